<?php
// Plays what a Laravel application and its worker do with the queue driver for beanstalkd: php laravel.php HOST PORT. Prints the flows
// that held.

declare(strict_types=1);

error_reporting(E_ALL & ~E_DEPRECATED); // the libraries are older than PHP's latest opinions

require 'Pheanstalk/autoload.php';
require 'Illuminate/Queue/autoload.php';
require 'Illuminate/Events/autoload.php';

use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Events\Dispatcher;
use Illuminate\Queue\Capsule\Manager;
use Illuminate\Queue\Connectors\BeanstalkdConnector;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;

function same(mixed $want, mixed $got): void
{
    if ($want !== $got) {
        throw new Exception('got ' . var_export($got, true) . ', want ' . var_export($want, true));
    }
}

/** A job class of an application. */
class Mail
{
    public static array $done = [];

    public function fire($job, $data): void
    {
        self::$done[] = $data['to'] . ' ' . $job->attempts();
        if ($data['to'] === 'nobody' && $job->attempts() < 3) {
            throw new Exception('try again');
        }
        $job->delete();
    }
}

class Handler implements ExceptionHandler
{
    public function report(Throwable $e) {}
    public function shouldReport(Throwable $e) { return false; }
    public function render($request, Throwable $e) {}
    public function renderForConsole($output, Throwable $e) {}
}

$container = new Container();
Container::setInstance($container);
$manager = new Manager($container);
$manager->addConnection([
    'driver' => 'beanstalkd', 'host' => $argv[1], 'port' => (int) $argv[2], 'queue' => 'laravel', 'retry_after' => 90, 'block_for' => 0,
]);
$manager->getQueueManager()->addConnector('beanstalkd', fn() => new BeanstalkdConnector());
$queue = $manager->getConnection();
$events = new Dispatcher($container);
$worker = new Worker($manager->getQueueManager(), $events, new Handler(), fn() => false);
$once = fn(int $backoff = 0) => $worker->runNextJob('default', 'laravel', new WorkerOptions('default', $backoff, 128, 60, 0, 3));

$flows = [
    'works' => function () use ($queue, $once) {
        $queue->push('Mail', ['to' => 'Ann ü']);
        same(1, $queue->size());
        $once();
        same(['Ann ü 1'], Mail::$done);
        same(0, $queue->size());
        same(null, $queue->pop());
    },
    'retries' => function () use ($queue, $once) {
        Mail::$done = [];
        $queue->push('Mail', ['to' => 'nobody']);
        for ($i = 0; $i < 3; $i++) {
            $once();
        }
        same(['nobody 1', 'nobody 2', 'nobody 3'], Mail::$done);
        same(0, $queue->size());
    },
    'gives up' => function () use ($queue, $once) {
        $queue->push('Mail', ['to' => 'nobody']);
        for ($i = 0; $i < 3; $i++) {
            $queue->pop()->release(); // as a worker that is lost
        }
        Mail::$done = [];
        $once();
        same([], Mail::$done); // four attempts are one more than it may have
        same(null, $queue->pop());
    },
    'later' => function () use ($queue) {
        $late = $queue->later(3600, 'Mail', ['to' => 'Eve']);
        same(null, $queue->pop());
        same('1', $queue->getPheanstalk()->statsTube('laravel')['current-jobs-delayed']);
        $queue->deleteMessage('laravel', $late->getId());
        $queue->later(2, 'Mail', ['to' => 'Bob']);
        sleep(2);
        for ($i = 0; !($job = $queue->pop()) && $i < 1000; $i++) {
            usleep(20000);
        }
        same(['to' => 'Bob'], $job->payload()['data']);
        same(1, $job->attempts());
        $job->release(60);
        same(null, $queue->pop());
        $queue->deleteMessage('laravel', $job->getJobId());
    },
    'raw' => function () use ($queue) {
        $queue->pushRaw('{"a":"\u00fc"}');
        $job = $queue->pop();
        same('{"a":"\u00fc"}', $job->getRawBody());
        $job->bury();
        same('1', $queue->getPheanstalk()->statsTube('laravel')['current-jobs-buried']);
        $queue->getPheanstalk()->useTube('laravel')->kick(1);
        $queue->pop()->delete();
    },
];

foreach ($flows as $name => $flow) {
    try {
        $flow();
    } catch (Throwable $e) {
        fwrite(STDERR, "$name: $e\n");
        exit(1);
    }
    echo strtr($name, ' ', '-'), "\n";
}
