<?php
// Plays flows of pheanstalk: php pheanstalk.php HOST PORT [WITHOUT]. Prints the flows that held; the flow WITHOUT is not played.

declare(strict_types=1);

require 'Pheanstalk/autoload.php';

use Pheanstalk\Exception\JobNotFoundException;
use Pheanstalk\Exception\JobTooBigException;
use Pheanstalk\Exception\ServerException;
use Pheanstalk\Pheanstalk;

set_error_handler(function (int $level, string $message, string $file, int $line): bool {
    if (error_reporting() & $level & ~E_DEPRECATED) { // the library is older than PHP's latest opinions
        throw new ErrorException($message, 0, $level, $file, $line);
    }
    return true;
});

function same(mixed $want, mixed $got): void
{
    if ($want !== $got) {
        throw new Exception('got ' . var_export($got, true) . ', want ' . var_export($want, true));
    }
}

/** The class of what a call throws. */
function thrown(Closure $call): string
{
    try {
        $call();
    } catch (Exception $e) {
        return get_class($e);
    }
    return 'nothing';
}

$connect = fn() => Pheanstalk::create($argv[1], (int) $argv[2], 120);
$p = $connect();
$other = $connect();

$flows = [
    'bodies' => function () use ($p) {
        $p->useTube('bodies')->watchOnly('bodies');
        $all = '';
        for ($i = 0; $i < 256; $i++) {
            $all .= chr($i);
        }
        foreach ([$all, '', "a\r\n", "\r\n", 'delete 1', str_repeat("\xff\x00", 30000), 'ü€'] as $body) {
            $id = $p->put($body)->getId();
            $job = $p->reserve();
            same($id, $job->getId());
            same($body, $job->getData());
            same($body, $p->peek($job)->getData());
            $p->delete($job);
        }
        same(JobTooBigException::class, thrown(fn() => $p->put(str_repeat('x', 65536))));
        same(null, $p->reserveWithTimeout(0));
    },
    'life' => function () use ($p, $other) {
        $p->useTube('life')->watchOnly('life');
        $job = $p->put('one', 10, 0, 30);
        $taken = $other->watchOnly('life')->reserve();
        same($job->getId(), $taken->getId());
        $other->touch($taken);
        same(JobNotFoundException::class, thrown(fn() => $p->delete($taken)));
        $other->release($taken, 20, 0);
        $taken = $other->reserveWithTimeout(0);
        $other->bury($taken, 30);
        same('one', $p->peekBuried()->getData());
        same(null, $p->peekReady());
        same(1, $p->kick(10));
        same('one', $p->peekReady()->getData());
        $taken = $other->reserve();
        $other->bury($taken);
        $p->kickJob($taken);
        $taken = $other->reserve();
        $other->release($taken, 40, 60);
        same('one', $p->peekDelayed()->getData());
        $stats = $p->statsJob($taken);
        same(
            ['delayed', '40', '60', '30', '4', '0', '2', '2', '2'],
            [$stats['state'], $stats['pri'], $stats['delay'], $stats['ttr'], $stats['reserves'], $stats['timeouts'], $stats['releases'],
                $stats['buries'], $stats['kicks']],
        );
        $p->delete($taken);
        same(ServerException::class, thrown(fn() => $p->statsJob($taken)));
    },
    'order' => function () use ($p) {
        $p->useTube('order')->watchOnly('order');
        foreach ([5 => 'c', 0 => 'a', 4294967295 => 'd'] as $pri => $body) {
            $p->put($body, $pri);
        }
        $p->put('b', 0);
        $got = '';
        while ($job = $p->reserveWithTimeout(0)) {
            $got .= $job->getData();
            $p->delete($job);
        }
        same('abcd', $got);
    },
    'tubes' => function () use ($p) {
        $p->useTube('t-1')->watchOnly('default');
        same('t-1', $p->listTubeUsed(true));
        $p->watch('A.b/c+d;e$f_g()')->watch('1e5');
        same(['default', 'A.b/c+d;e$f_g()', '1e5'], array_map('strval', $p->listTubesWatched(true)));
        $p->ignore('default')->ignore('1e5');
        same(['A.b/c+d;e$f_g()'], $p->listTubesWatched(true));
        same(true, in_array('t-1', $p->listTubes(), true));
        $p->put('x');
        $p->pauseTube('t-1', 60);
        same('60', $p->statsTube('t-1')['pause']);
        $p->watchOnly('t-1');
        same(null, $p->reserveWithTimeout(0));
        $p->resumeTube('t-1');
        $p->delete($p->reserveWithTimeout(0));
    },
    'stats' => function () use ($p) {
        $stats = $p->stats();
        foreach (['current-jobs-ready', 'cmd-put', 'total-jobs', 'max-job-size', 'uptime', 'pid', 'current-connections'] as $key) {
            same(true, ctype_digit((string) $stats[$key]));
        }
        same('65535', $stats['max-job-size']);
        same('false', $stats['draining']);
        foreach ($p->listTubes() as $tube) {
            foreach ($p->statsTube((string) $tube) as $key => $value) {
                same(true, $key === 'name' || ctype_digit((string) $value));
            }
        }
        same('0', $p->statsTube('default')['current-jobs-buried']);
    },
    'ttr' => function () use ($p, $other) {
        $p->useTube('ttr')->watchOnly('ttr');
        $p->put('x', 1024, 0, 1);
        $job = $other->watchOnly('ttr')->reserve();
        same('x', $p->reserveWithTimeout(120)->getData());
        same(JobNotFoundException::class, thrown(fn() => $other->release($job)));
        same(true, $p->statsJob($job)['timeouts'] >= 1); // on a busy machine the second reservation may have ended, too
        $p->delete($job);
    },
];

foreach ($flows as $name => $flow) {
    if ($name === ($argv[3] ?? null)) {
        continue;
    }
    try {
        $flow();
    } catch (Throwable $e) {
        fwrite(STDERR, "$name: $e\n");
        exit(1);
    }
    echo "$name\n";
}
