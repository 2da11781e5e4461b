#!/usr/bin/perl
# Works on the queue greet until it is stopped: perl worker.pl
use strict;
use warnings;

use Gearman::Worker;
use JSON::PP;

$| = 1; # print at once
my $worker = Gearman::Worker->new(job_servers => [$ENV{GEARMAN_SERVER} // '127.0.0.1:4730']);

$worker->register_function(greet => sub {
    my ($name) = @{ decode_json($_[0]->arg) }; # a JSON array of arguments, whatever the protocol of the producer
    print "Hello, $name\n";
    return "greeted $name";
});

$worker->work while 1;
