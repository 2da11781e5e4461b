#!/usr/bin/perl
# Submits a job to the queue greet: perl producer.pl [NAME]
use strict;
use warnings;

use Gearman::Client;
use JSON::PP;

my $client = Gearman::Client->new(job_servers => [$ENV{GEARMAN_SERVER} // '127.0.0.1:4730']);
my $handle = $client->dispatch_background(greet => \encode_json([$ARGV[0] // 'Perl'])) or die "no server took the job\n";
print "submitted $handle\n";
