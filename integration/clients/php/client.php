<?php
// A Gearman client: php client.php HOST PORT COMMAND ARGUMENTS; the workload comes from standard input.
//
//   do normal|high|low FUNC [UNIQUE]           waits for the outcome
//   background normal|high|low FUNC [UNIQUE]   prints the handle
//   status HANDLE
//   status-unique UNIQUE
//   tasks FUNC COUNT                           COUNT tasks at once, the workload is a prefix of each one's number

declare(strict_types=1);

require __DIR__ . '/common.php';

function runOne(GearmanClient $client, string $priority, string $func, string $body, string $unique): void
{
    $method = ['normal' => 'doNormal', 'high' => 'doHigh', 'low' => 'doLow'][$priority];
    while (true) {
        $data = @$client->$method($func, $body, $unique);
        switch ($client->returnCode()) {
            case GEARMAN_WORK_DATA:
                event('data', ['data' => $data]);
                break;
            case GEARMAN_WORK_WARNING:
                event('warning', ['data' => $data]);
                break;
            case GEARMAN_WORK_STATUS:
                [$num, $den] = $client->doStatus();
                event('status', ['num' => $num, 'den' => $den]);
                break;
            case GEARMAN_SUCCESS:
                event('complete', ['data' => $data, 'id' => $client->doJobHandle()]);
                return;
            case GEARMAN_WORK_FAIL:
                event('fail');
                return;
            case GEARMAN_WORK_EXCEPTION:
                event('exception', ['data' => (string) $data]);
                return;
            default:
                stop('client: ' . $client->returnCode() . ' ' . $client->error());
        }
    }
}

function runMany(GearmanClient $client, string $func, int $count, string $prefix): void
{
    $client->setCreatedCallback(function (GearmanTask $t): void {
        event('created', ['id' => $t->jobHandle(), 'unique' => $t->unique()]);
    });
    $client->setDataCallback(function (GearmanTask $t): void {
        event('data', ['unique' => $t->unique(), 'data' => $t->data()]);
    });
    $client->setWarningCallback(function (GearmanTask $t): void {
        event('warning', ['unique' => $t->unique(), 'data' => $t->data()]);
    });
    $client->setStatusCallback(function (GearmanTask $t): void {
        event('status', ['unique' => $t->unique(), 'num' => $t->taskNumerator(), 'den' => $t->taskDenominator()]);
    });
    $client->setCompleteCallback(function (GearmanTask $t): void {
        event('complete', ['unique' => $t->unique(), 'data' => $t->data()]);
    });
    $client->setExceptionCallback(function (GearmanTask $t): void {
        event('exception', ['unique' => $t->unique(), 'data' => $t->data()]);
    });
    $client->setFailCallback(function (GearmanTask $t): void {
        event('fail', ['unique' => $t->unique()]);
    });
    for ($i = 0; $i < $count; $i++) {
        $client->addTask($func, $prefix . $i, null, "task-$i");
    }
    // Tasks that fail make runTasks false; what happened to each is in the callbacks.
    @$client->runTasks();
    if (in_array($client->returnCode(), [GEARMAN_LOST_CONNECTION, GEARMAN_COULD_NOT_CONNECT, GEARMAN_TIMEOUT], true)) {
        stop('client: ' . $client->error());
    }
}

[, $host, $port, $command] = $argv;
$args = array_slice($argv, 4);
$body = $command === 'status' || $command === 'status-unique' ? '' : stream_get_contents(STDIN);
$client = new GearmanClient();
$client->addServer($host, (int) $port);
$client->setTimeout(120000);
switch ($command) {
    case 'do':
        runOne($client, $args[0], $args[1], $body, $args[2] ?? '');
        break;
    case 'background':
        $method = ['normal' => 'doBackground', 'high' => 'doHighBackground', 'low' => 'doLowBackground'][$args[0]];
        $handle = $client->$method($args[1], $body, $args[2] ?? '');
        if ($client->returnCode() !== GEARMAN_SUCCESS) {
            stop('client: ' . $client->error());
        }
        event('created', ['id' => $handle]);
        break;
    case 'status':
        [$known, $running, $num, $den] = $client->jobStatus($args[0]);
        event('jobstatus', ['known' => $known, 'active' => $running, 'num' => $num, 'den' => $den]);
        break;
    case 'status-unique':
        [$known, $running, $num, $den] = $client->jobStatusByUniqueKey($args[0]);
        event('jobstatus', ['known' => $known, 'active' => $running, 'num' => $num, 'den' => $den]);
        break;
    case 'tasks':
        runMany($client, $args[0], (int) $args[1], $body);
        break;
    default:
        stop("unknown command $command");
}
