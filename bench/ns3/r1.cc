// The reference job R1 on ns-3, as the other side of `weft bench sim --vs ns3`.
//
// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// ns-3 is GPL-2.0-only. This file is no part of weft's binary but text in it: it is compiled on the user's machine
// against the user's ns-3.
//
//   r1 FLOWS [--count=1]      prints: ns-3 flows=.. done=.. hops=.. mean_received_us=.. cpu_s=..
//
// R1: 100 hosts in 5 racks, 5 leaves, 5 spines; 10 Gb/s to hosts, 40 Gb/s between switches, 1 us a link, store and forward;
// DropTail queues of 400,000 B at every port; NewReno with SACK, 1500 B packets, an ACK for each, window of 175 segments,
// 250 ms at least before a timeout. Each line of FLOWS is `start_ps from to packets spine`; data and ACKs go by that spine.
//
// ns-3 is at its best here: routing is one look at a table by host numbers, no queue discs, no traces unless hops are
// counted (which costs time, so counting and timing are two runs). CPU time is that of Simulator::Run alone.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cinttypes>
#include <cstdio>
#include <string>
#include <sys/resource.h>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t LEAVES = 5;
constexpr uint32_t HOSTS_PER_LEAF = 20;
constexpr uint32_t SPINES = 5;
constexpr uint32_t HOSTS = LEAVES * HOSTS_PER_LEAF;
constexpr uint32_t SEGMENT_BYTES = 1460;
constexpr uint32_t WINDOW_SEGMENTS = 175;
constexpr uint32_t PORT_BUFFER_BYTES = 400000;

struct Flow
{
    uint64_t startPs;
    uint32_t from;
    uint32_t to;
    uint64_t bytes;
    uint64_t received;
    double fctUs; // 0 until the last byte was received
};

std::vector<Flow> g_flows;
std::vector<uint32_t> g_spineOf(HOSTS* HOSTS, 0); // by sender and receiver
uint64_t g_hops = 0;
size_t g_done = 0;

// Host n of leaf l has 10.l.n.2, the leaf's side of that link 10.l.n.1.
uint32_t
HostOf(Ipv4Address address)
{
    const uint32_t bits = address.Get();
    return ((bits >> 16) & 255) * HOSTS_PER_LEAF + ((bits >> 8) & 255);
}

std::string
HostNet(uint32_t host)
{
    return "10." + std::to_string(host / HOSTS_PER_LEAF) + "." + std::to_string(host % HOSTS_PER_LEAF) + ".";
}

// Routing of a leaf or spine: the next hop follows from the numbers of both hosts.
class SpineRouting : public Ipv4RoutingProtocol
{
  public:
    // Leaf: towards its hosts, in their order. Spine: unused. Values are interface numbers.
    std::vector<uint32_t> m_down;
    // Leaf: towards the spines. Spine: towards the leaves.
    std::vector<uint32_t> m_up;
    bool m_isLeaf = false;
    uint32_t m_leaf = 0;

    bool RouteInput(Ptr<const Packet> packet,
                    const Ipv4Header& header,
                    Ptr<const NetDevice>,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback,
                    LocalDeliverCallback,
                    ErrorCallback) override
    {
        const uint32_t from = HostOf(header.GetSource());
        const uint32_t to = HostOf(header.GetDestination());
        Ptr<Ipv4Route> route = RouteBy(Interface(from, to));
        route->SetDestination(header.GetDestination());
        forward(route, packet, header);
        return true;
    }

    // Switches send nothing of their own.
    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header&, Ptr<NetDevice>, Socket::SocketErrno& error) override
    {
        error = Socket::ERROR_NOROUTETOHOST;
        return nullptr;
    }

    void SetIpv4(Ptr<Ipv4> ip) override { m_ip = ip; }
    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

  private:
    uint32_t Interface(uint32_t from, uint32_t to) const
    {
        const uint32_t leaf = to / HOSTS_PER_LEAF;
        if (!m_isLeaf)
        {
            return m_up[leaf];
        }
        return leaf == m_leaf ? m_down[to % HOSTS_PER_LEAF] : m_up[g_spineOf[from * HOSTS + to]];
    }

    // One route object for each interface, made once.
    Ptr<Ipv4Route> RouteBy(uint32_t interface)
    {
        if (m_routes.size() <= interface)
        {
            m_routes.resize(interface + 1);
        }
        Ptr<Ipv4Route>& route = m_routes[interface];
        if (!route)
        {
            route = Create<Ipv4Route>();
            route->SetOutputDevice(m_ip->GetNetDevice(interface));
            route->SetGateway(Ipv4Address("0.0.0.0"));
            route->SetSource(m_ip->GetAddress(interface, 0).GetLocal());
        }
        return route;
    }

    Ptr<Ipv4> m_ip;
    std::vector<Ptr<Ipv4Route>> m_routes;
};

class SpineRoutingHelper : public Ipv4RoutingHelper
{
  public:
    SpineRoutingHelper* Copy() const override { return new SpineRoutingHelper(*this); }
    Ptr<Ipv4RoutingProtocol> Create(Ptr<Node>) const override { return CreateObject<SpineRouting>(); }
};

Ptr<SpineRouting>
RoutingOf(Ptr<Node> node)
{
    return DynamicCast<SpineRouting>(node->GetObject<Ipv4>()->GetRoutingProtocol());
}

bool
ReadFlows(const char* file)
{
    FILE* in = std::fopen(file, "r");
    if (!in)
    {
        return false;
    }
    uint64_t startPs;
    uint32_t from, to, packets, spine;
    while (std::fscanf(in, "%" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &startPs, &from, &to, &packets, &spine) == 5)
    {
        g_flows.push_back({startPs, from, to, uint64_t(packets) * SEGMENT_BYTES, 0, 0.0});
        g_spineOf[from * HOSTS + to] = spine;
        g_spineOf[to * HOSTS + from] = spine;
    }
    std::fclose(in);
    return !g_flows.empty();
}

void
SetDefaults()
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT_BYTES));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(WINDOW_SEGMENTS * SEGMENT_BYTES));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(WINDOW_SEGMENTS * SEGMENT_BYTES));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(250)));
}

void
CountHop(Ptr<const Packet>)
{
    g_hops++;
}

PointToPointHelper
LinkOf(const char* rate)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue("1us"));
    const QueueSize limit(QueueSizeUnit::BYTES, PORT_BUFFER_BYTES);
    link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(limit));
    return link;
}

// Joins two nodes; the device's own queue is the only one. Returns both interfaces.
Ipv4InterfaceContainer
Join(PointToPointHelper link, Ptr<Node> a, Ptr<Node> b, const std::string& net, bool countHops)
{
    NetDeviceContainer devices = link.Install(a, b);
    Ipv4AddressHelper addresses;
    addresses.SetBase((net + "0").c_str(), "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    for (uint32_t i = 0; countHops && i < 2; i++)
    {
        devices.Get(i)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&CountHop));
    }
    return interfaces;
}

// Builds the fabric and returns its hosts.
NodeContainer
BuildFabric(bool countHops)
{
    NodeContainer hosts, leaves, spines;
    hosts.Create(HOSTS);
    leaves.Create(LEAVES);
    spines.Create(SPINES);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
    stack.Install(hosts);
    stack.SetRoutingHelper(SpineRoutingHelper());
    stack.Install(leaves);
    stack.Install(spines);
    for (uint32_t host = 0; host < HOSTS; host++)
    {
        Ptr<Node> leaf = leaves.Get(host / HOSTS_PER_LEAF);
        auto ends = Join(LinkOf("10Gbps"), leaf, hosts.Get(host), HostNet(host), countHops);
        RoutingOf(leaf)->m_down.push_back(ends.Get(0).second);
        Ptr<Ipv4> ip = hosts.Get(host)->GetObject<Ipv4>();
        Ipv4StaticRoutingHelper().GetStaticRouting(ip)->SetDefaultRoute(ends.GetAddress(0), ends.Get(1).second);
    }
    for (uint32_t leaf = 0; leaf < LEAVES; leaf++)
    {
        Ptr<SpineRouting> routing = RoutingOf(leaves.Get(leaf));
        routing->m_isLeaf = true;
        routing->m_leaf = leaf;
        for (uint32_t spine = 0; spine < SPINES; spine++)
        {
            const std::string net = "10." + std::to_string(100 + leaf) + "." + std::to_string(spine) + ".";
            auto ends = Join(LinkOf("40Gbps"), leaves.Get(leaf), spines.Get(spine), net, countHops);
            routing->m_up.push_back(ends.Get(0).second);
            RoutingOf(spines.Get(spine))->m_up.push_back(ends.Get(1).second);
        }
    }
    return hosts;
}

void
Received(uint32_t number, Ptr<const Packet> packet, const Address&)
{
    Flow& flow = g_flows[number];
    flow.received += packet->GetSize();
    if (flow.received >= flow.bytes && flow.fctUs == 0.0)
    {
        flow.fctUs = (Simulator::Now().GetPicoSeconds() - int64_t(flow.startPs)) / 1e6;
        if (++g_done == g_flows.size())
        {
            Simulator::Stop();
        }
    }
}

void
StartFlow(uint32_t number, const NodeContainer& hosts)
{
    const Flow& flow = g_flows[number];
    const uint16_t port = 1024 + number % 60000;
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    ApplicationContainer receiver = sink.Install(hosts.Get(flow.to));
    receiver.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Received, number));
    receiver.Start(Seconds(0));
    const Ipv4Address address((HostNet(flow.to) + "2").c_str());
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(address, port));
    source.SetAttribute("MaxBytes", UintegerValue(flow.bytes));
    source.SetAttribute("SendSize", UintegerValue(SEGMENT_BYTES));
    // The sink must listen first, also for the flow that starts at 0.
    source.Install(hosts.Get(flow.from)).Start(PicoSeconds(flow.startPs + 1));
}

double
CpuSeconds()
{
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec / 1e6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

} // namespace

int
main(int argc, char** argv)
{
    if (argc < 2 || !ReadFlows(argv[1]))
    {
        std::fprintf(stderr, "error: give a file with lines of `start_ps from to packets spine`\n");
        return 2;
    }
    const bool countHops = argc > 2 && std::string(argv[2]) == "--count=1";
    Time::SetResolution(Time::PS);
    SetDefaults();
    const NodeContainer hosts = BuildFabric(countHops);
    for (uint32_t number = 0; number < g_flows.size(); number++)
    {
        StartFlow(number, hosts);
    }
    Simulator::Stop(Seconds(100));
    const double before = CpuSeconds();
    Simulator::Run();
    const double cpu = CpuSeconds() - before;
    double sumUs = 0;
    for (const Flow& flow : g_flows)
    {
        sumUs += flow.fctUs;
    }
    std::printf("ns-3 flows=%zu done=%zu hops=%" PRIu64 " mean_received_us=%.3f cpu_s=%.6f\n",
                g_flows.size(),
                g_done,
                g_hops,
                sumUs / g_flows.size(),
                cpu);
    return g_done == g_flows.size() ? 0 : 1;
}
