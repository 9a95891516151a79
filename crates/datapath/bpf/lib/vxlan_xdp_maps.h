/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What only the VTEP's XDP programs need: next hops that they keep for a while, and ports to send to. */
#pragma once

#include "vxlan_maps.h"

/* Per CPU, so that nobody reads half of one. By peer and flow: flows of one peer may have several ways. */
VTEP_MAP(vtep_hops, PERCPU_ARRAY, 8192, __u32, struct vtep_hop);

/* By the index of the port. */
VTEP_MAP(vtep_devices, DEVMAP, 1024, __u32, __u32);
