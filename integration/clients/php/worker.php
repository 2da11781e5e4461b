<?php
// A Gearman worker: php worker.php HOST PORT NAME=BEHAVIOUR...
//
// Behaviours: echo, reverse, upper, fail, exception, progress, hold (says that it has the job and never finishes).

declare(strict_types=1);

require __DIR__ . '/common.php';

function behave(string $behaviour, GearmanJob $job): ?string
{
    $body = (string) $job->workload();
    switch ($behaviour) {
        case 'echo':
            return $body;
        case 'reverse':
            return strrev($body);
        case 'upper':
            return strtoupper($body);
        case 'fail':
            $job->sendFail();
            return null;
        case 'exception':
            $job->sendException('broken: ' . $body);
            return null;
        case 'progress':
            $job->sendStatus(1, 4);
            $job->sendData('first ');
            $job->sendWarning('careful');
            $job->sendData('second ');
            $job->sendStatus(3, 4);
            return 'end';
        case 'hold':
            $job->sendStatus(1, 2);
            while (true) {
                sleep(60);
            }
        default:
            stop("unknown behaviour $behaviour");
    }
}

[, $host, $port] = $argv;
$worker = new GearmanWorker();
$worker->addServer($host, (int) $port);
foreach (array_slice($argv, 3) as $pair) {
    [$name, $behaviour] = explode('=', $pair, 2);
    $worker->addFunction($name, function (GearmanJob $job) use ($behaviour): ?string {
        event('job', [
            'func' => $job->functionName(),
            'id' => $job->handle(),
            'unique' => $job->unique(),
            'data' => (string) $job->workload(),
        ]);
        return behave($behaviour, $job);
    });
}
event('ready');
while (true) {
    // A job that was failed on purpose makes work() false as well; only a lost connection ends the worker.
    if (!@$worker->work() && in_array($worker->returnCode(), [GEARMAN_LOST_CONNECTION, GEARMAN_COULD_NOT_CONNECT], true)) {
        stop('worker: ' . $worker->error());
    }
}
