<?php
// Works on the tube greet until it is stopped: php beanstalkd_worker.php

require 'Pheanstalk/autoload.php'; // with Composer: vendor/autoload.php

use Pheanstalk\Exception\ConnectionException;
use Pheanstalk\Exception\ServerException;
use Pheanstalk\Exception\SocketException;

[$host, $port] = explode(':', getenv('BEANSTALKD_SERVER') ?: '127.0.0.1:11300');

while (true) {
    try {
        $beanstalkd = Pheanstalk\Pheanstalk::create($host, (int) $port)->watchOnly('greet');
        while (true) {
            $job = $beanstalkd->reserveWithTimeout(5); // less than the ten seconds that the client waits for a reply
            if ($job === null) {
                continue;
            }
            [$name] = json_decode($job->getData(), true); // a JSON array of arguments, whatever the protocol of the producer
            echo "Hello, $name\n";
            $beanstalkd->delete($job);
        }
    } catch (ConnectionException | SocketException | ServerException $e) { // the broker may be restarted
        fwrite(STDERR, 'trying again in a second: ' . $e->getMessage() . "\n");
        sleep(1);
    }
}
