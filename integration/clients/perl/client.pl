# A Gearman client: perl client.pl ADDRESS COMMAND ARGUMENTS; the workload comes from standard input.
#
#   do normal|high|low FUNC [UNIQUE]            waits for the outcome
#   background normal|high|low FUNC [UNIQUE]    prints the handle
#   status HANDLE
#   taskset FUNC COUNT                      COUNT tasks at once
#   retry FUNC COUNT                        one task that is tried again COUNT times when it fails
use strict;
use warnings;

use Gearman::Client;
use Gearman::Task;
use JSON::PP;
use MIME::Base64;
use Storable;

$| = 1;

sub event {
    my ($event, %fields) = @_;
    $fields{data} = encode_base64($fields{data}, '') if defined $fields{data};
    print encode_json({ event => $event, %fields }), "\n";
}

my ($address, $command, @args) = @ARGV;
my $client = Gearman::Client->new(job_servers => [$address], exceptions => 1, command_timeout => 120);

sub workload { local $/; binmode STDIN; my $in = <STDIN>; return defined $in ? $in : '' }

sub callbacks {
    my %tag = @_;
    return (
        on_complete  => sub { event('complete', %tag, data => ${ $_[0] }) },
        on_fail      => sub { event('fail', %tag) },
        on_data      => sub { event('data', %tag, data => ${ $_[0] }) },
        on_warning   => sub { event('warning', %tag, data => ${ $_[0] }) },
        on_status    => sub { event('status', %tag, num => $_[0] + 0, den => $_[1] + 0) },
        on_retry     => sub { event('retry', %tag, num => $_[0] + 0) },
        # The Perl worker freezes its exceptions; those of others come as they are.
        on_exception => sub {
            my $text = eval { ${ Storable::thaw($_[0]) } } // $_[0];
            event('exception', %tag, data => $text);
        },
    );
}

sub options {
    my ($priority, $unique) = @_;
    my %o = (priority => $priority);
    $o{uniq} = $unique if defined $unique;
    return %o;
}

if ($command eq 'do') {
    my ($priority, $func, $unique) = @args;
    $client->do_task(Gearman::Task->new($func, \workload(), { callbacks(), options($priority, $unique) }));
}
elsif ($command eq 'background') {
    my ($priority, $func, $unique) = @args;
    my $handle = $client->dispatch_background(Gearman::Task->new($func, \workload(), { options($priority, $unique) }));
    die "not accepted\n" unless $handle;
    $handle =~ s{^.*//}{};
    event('created', id => $handle);
}
elsif ($command eq 'status') {
    my $status = $client->get_status("$address//$args[0]") or die "no status\n";
    my ($num, $den) = $status->progress ? @{ $status->progress } : (0, 0);
    event('jobstatus',
        known  => $status->known   ? JSON::PP::true : JSON::PP::false,
        active => $status->running ? JSON::PP::true : JSON::PP::false,
        num => $num + 0, den => $den + 0);
}
elsif ($command eq 'taskset') {
    my ($func, $count) = @args;
    my $prefix = workload();
    my $set    = $client->new_task_set;
    for my $i (0 .. $count - 1) {
        my $body = $prefix . $i;
        $set->add_task($func, \$body, { callbacks(unique => "task-$i"), uniq => "task-$i" });
    }
    $set->wait(timeout => 120);
}
elsif ($command eq 'retry') {
    my ($func, $count) = @args;
    $client->do_task(Gearman::Task->new($func, \workload(), { callbacks(), retry_count => $count }));
}
else { die "unknown command $command\n" }
