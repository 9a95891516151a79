/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What the testbed's programs and user space share; datapath/build/abi.rs writes the Rust of it. */
#pragma once

#include <linux/types.h>

/* Latency histogram: values below 256 ns exactly, then 128 buckets an octave (at most 0.8 % wide), up to 2^36 ns. */
#define TESTER_BUCKETS 3840

/* Headers of one stream's frames; 42 bytes, with IPv6 62, and 4 more with a VLAN tag. */
struct tester_head {
	__u8 bytes[72];
};

/* Turns in a round of lengths, at most. */
#define TESTER_TURNS 256

/* One turn: which length its frame has. */
struct tester_turn {
	__u32 heads;        /* place of the first stream's head for this length */
	__u32 cut;          /* bytes that such a frame is shorter than the longest */
};

/* Longest frame that the kernel sends as a live frame: a page without head room, bytes. */
#define TESTER_FRAME_BYTES 3000

/* A frame that leaves as it is. */
struct tester_frame {
	__u32 bytes;
	__u32 cut;          /* bytes that it is shorter than the longest */
	__u8 data[TESTER_FRAME_BYTES];
};

/* The generator: what to do, and what it has done. One thread at a time runs it. */
struct tester_generator {
	__u64 interval;     /* between frames, ticks of 2^-10 ns; 0: as fast as possible */
	__u64 due;          /* time of the next frame, ticks; 0: now */
	__u64 end_ns;       /* send nothing from then on */
	__u64 duration_ns;  /* from the first run on */
	__u64 began_ns;     /* the first run; 0: there was none */
	__u64 limit;        /* send at most so many frames */
	__u64 slip_ns;      /* later than this: begin a new schedule instead of catching up */
	__u64 sent;
	__u64 slips;
	__u64 polls;        /* runs that were too early */
	__u64 first_ns;     /* time of the first frame */
	__u64 last_ns;      /* time of the latest frame */
	__u32 streams;
	__u32 stream;       /* whose turn it is */
	__u32 sequence;     /* of that stream's next frame */
	__u32 head_bytes;   /* 42, 46, 62 or 66 */
	__u32 spin;         /* 1: wait inside the program, for slow rates */
	__u32 turns;        /* in a round of lengths; 1: all frames have one */
	__u32 seed;         /* of the trial, 8 bits */
	__u32 zero;
};

/* The analyser: which trial it counts. */
struct tester_analyser {
	__u32 trial;        /* counters of another trial count as zero */
	__u32 streams;
	__u32 seed;         /* 8 bits */
	__u32 payload_mask; /* the payload is checked in frames whose sequence has none of these bits */
};

/* One stream at its receiver, shared by all CPUs. */
struct tester_stream {
	__u64 station;      /* expected hardware address and, in the low 16 bits, VLAN; 0: not expected at this port */
	__u64 window;       /* bit n: the frame n before the newest has arrived */
	__u64 latency_ns;   /* of the latest frame */
	__u32 next;         /* sequence after the newest */
	__u32 trial;
};

/* One stream's counters on one CPU. */
struct tester_seen {
	__u64 received;
	__u64 misdelivered;
	__u64 corrupt;
	__u64 stale;
	__u64 reordered;
	__u64 duplicated;
	__u64 trial;
};

/* One port on one CPU. */
struct tester_port {
	__u64 frames;
	__u64 bytes;
	__u64 first_ns;
	__u64 last_ns;
	__u64 latency_sum_ns;
	__u64 latency_max_ns;
	__u64 jitter_sum_ns;
	__u64 jitter_count;
	__u64 damaged;
	__u64 earlier;
	__u64 unknown;
};

/* Frames of one digest at their receiver. */
struct tester_known {
	__u64 received;
};

/* A port that knows frames by their digest, on one CPU. */
struct tester_recognised {
	__u64 frames;
	__u64 bytes;
	__u64 first_ns;
	__u64 last_ns;
	__u64 foreign;      /* frames of no digest that it knows; the kernel has them */
};

/* An emulated link: a FIFO in virtual time. A tick is 2^-10 ns: fine enough for a byte at 100 Gbit/s. */
struct tester_link {
	__u32 lock;             /* struct bpf_spin_lock in the program */
	__u32 overhead_bytes;   /* that the line carries beside what the kernel counts: FCS, preamble, gap */
	__u64 ticks_per_byte;   /* 0: endlessly fast */
	__u64 queue_ns;         /* longest wait for the line; a frame that would wait longer is dropped */
	__u64 delay_ns;         /* propagation */
	__u64 idle_ticks;       /* when the line will have sent everything */
	__u64 passed;
	__u64 dropped;
	__u64 foreign;          /* frames without a probe: they take their time on the line, but nobody can be told */
	__u64 saturated;        /* probes whose delay field is full */
};

/* The tester's own device: what comes in at one port goes out of another. */
struct tester_relay {
	__u32 to;               /* slot in the port map plus 1; 0: not ours, left to the kernel */
	__u32 burn_ns;          /* a known extra cost for each frame */
};

/* Where the frames of one segment go in a bed. */
#define FAN_INGRESS 1 /* as if the frame had come in at that interface */

struct bed_segment {
	__u32 ifindex;
	__u32 flags;
	__u32 vlan; /* tag that the frame gets; 0: none */
	__u32 zero;
};

/* Constants of the program that loses datagrams. */
struct loss_constants {
	__u32 threshold; /* a datagram is lost if a random 32-bit number is below it */
	__be16 port;     /* of the datagrams that may be lost */
	__u8 reserved[2];
};

/* What a link does to the frames that come in by it. */
struct impair_constants {
	__u64 seed;           /* of the chance that decides about each frame */
	__u64 threshold;      /* a frame is lost if a random 32-bit number is below it; 2^32: all are */
	__u64 ticks_per_byte; /* of the line, ticks of 2^-10 ns; 0: it takes whatever comes */
	__u64 queue_ns;       /* longest wait for the line; a frame that would wait longer is dropped */
	__u32 overhead_bytes; /* that the line carries beside what the kernel counts: FCS, preamble, gap */
	__u32 zero;
};

/* The start of a frame, as benchmarks write it. */
struct frame_start {
	__u8 bytes[128];
};

/* What becomes of a frame where datagrams are lost on purpose. */
#define LOSS_OUTCOMES(X) \
	X(PASSED) /* not to or from the port: untouched */ \
	X(SPARED) /* one of those that may be lost, and was not */ \
	X(LOST)   /* dropped: on purpose */

/* What becomes of a frame that comes in by a link that is worse than it should be. */
#define IMPAIR_OUTCOMES(X) \
	X(PASSED)      /* goes on as it came */ \
	X(LOST)        /* dropped: by chance */ \
	X(BEYOND_RATE) /* dropped: more than the line and its queue take */

/* What became of a frame at the plain switch. */
#define L2_OUTCOMES(X) \
	X(FORWARDED) /* known destination MAC */ \
	X(UNKNOWN)   /* dropped: unknown destination MAC */ \
	X(MALFORMED) /* dropped: shorter than an Ethernet header */

#define L2_ENUMERATOR(name) L2_##name,
#define LOSS_ENUMERATOR(name) LOSS_##name,
#define IMPAIR_ENUMERATOR(name) IMPAIR_##name,

enum loss_outcome { LOSS_OUTCOMES(LOSS_ENUMERATOR) LOSS_OUTCOME_COUNT };
enum impair_outcome { IMPAIR_OUTCOMES(IMPAIR_ENUMERATOR) IMPAIR_OUTCOME_COUNT };
enum l2_outcome { L2_OUTCOMES(L2_ENUMERATOR) L2_OUTCOME_COUNT };
