# A Gearman worker: perl worker.pl ADDRESS NAME=BEHAVIOUR...
#
# Behaviours: echo, reverse, upper, fail, exception, progress, hold; NAME=BEHAVIOUR/SECONDS registers with a timeout.
use strict;
use warnings;

use Gearman::Worker;
use JSON::PP;
use MIME::Base64;

$| = 1;

sub event {
    my ($event, %fields) = @_;
    $fields{data} = encode_base64($fields{data}, '') if defined $fields{data};
    print encode_json({ event => $event, %fields }), "\n";
}

my ($address, @functions) = @ARGV;
my $worker = Gearman::Worker->new(job_servers => [$address]);

my %behaviours = (
    echo      => sub { $_[0]->arg },
    reverse   => sub { scalar reverse $_[0]->arg },
    upper     => sub { uc $_[0]->arg },
    fail      => sub { undef },
    exception => sub { die "broken: " . $_[0]->arg . "\n" },
    progress  => sub {
        my $job = shift;
        $job->set_status(1, 4);
        $worker->send_work_data($job, 'first ');
        $worker->send_work_warning($job, 'careful');
        $worker->send_work_data($job, 'second ');
        $job->set_status(3, 4);
        return 'end';
    },
    hold => sub { sleep 60 while 1 },
);

for my $pair (@functions) {
    my ($name,  $rest)      = split /=/,  $pair, 2;
    my ($named, $seconds)   = split m{/}, $rest, 2;
    my $run = $behaviours{$named} or die "unknown behaviour $named\n";
    my $handler = sub {
        my $job = shift;
        event('job', func => $name, id => $job->handle, data => $job->arg);
        return $run->($job);
    };
    my @timeout = defined $seconds ? ($seconds) : ();
    $worker->register_function($name, @timeout, $handler) or die "cannot register $name\n";
}
event('ready');
$worker->work while 1;
