#!/usr/bin/perl
# Many stations on one network card: stations.pl announce|send|listen CARD SITE COUNT [SECONDS]
#   announce   a broadcast frame from each station of this site
#   send       a frame to each station of that site, from one of ours
#   listen     until each of this site's stations has got one of those, or that many seconds; prints how many have
# A station's address is 02:cc:SITE:00:NUMBER (two bytes); frames have an Ethertype for experiments (IEEE 802, 0x88b5).
use strict;
use warnings;

my ($action, $card, $site, $count, $seconds) = @ARGV;
my ($packet, $raw, $type) = (17, 3, 0x88b5);
open(my $file, '<', "/sys/class/net/$card/ifindex") or die "no card $card: $!\n";
my $index = 0 + <$file>;
socket(my $socket, $packet, $raw, unpack('S', pack('n', $action eq 'listen' ? $type : 0))) or die "socket: $!\n";
my $link = pack('S n l S C C a8', $packet, $type, $index, 1, 0, 6, '');
sub station { return pack('C4 n', 2, 0xcc, $_[0], 0, $_[1]) }
sub frame { my ($to, $from, $text) = @_; return pack('a6 a6 n a46', $to, $from, $type, $text) }

if ($action eq 'listen') {
    bind($socket, $link) or die "bind: $!\n";
    # PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC: it has as many addresses as there are stations.
    setsockopt($socket, 263, 1, pack('l S S a8', $index, 1, 6, '')) or die "promiscuous: $!\n";
    my (%found, $bytes);
    local $SIG{ALRM} = sub { print scalar(keys %found), "\n"; exit(keys(%found) == $count ? 0 : 1) };
    alarm($seconds);
    while (keys(%found) < $count) {
        defined(recv($socket, $bytes, 2048, 0)) or next;
        my ($to, $from, undef, $text) = unpack('a6 a6 n a4', $bytes);
        $found{$to} = 1 if $text eq 'here' and substr($to, 0, 4) eq substr(station($site, 0), 0, 4);
    }
    print scalar(keys %found), "\n";
    exit 0;
}
my $ours = station(255, 1);
for my $number (1 .. $count) {
    my $frame = $action eq 'announce' ? frame("\xff" x 6, station($site, $number), 'news')
                                      : frame(station($site, $number), $ours, 'here');
    send($socket, $frame, 0, $link) or die "sending: $!\n";
    select(undef, undef, undef, 0.01) if $number % 20 == 0;
}
