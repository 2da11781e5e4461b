<?php
// Works on the tube greet until it is stopped: php beanstalk_worker.php

require 'Pheanstalk/autoload.php'; // with Composer: vendor/autoload.php

use Pheanstalk\Exception\ConnectionException;
use Pheanstalk\Exception\ServerException;
use Pheanstalk\Exception\SocketException;

[$host, $port] = explode(':', getenv('BEANSTALKD_SERVER') ?: '127.0.0.1:11300');

while (true) {
    try {
        $beanstalk = Pheanstalk\Pheanstalk::create($host, (int) $port)->watchOnly('greet');
        while (true) {
            $job = $beanstalk->reserveWithTimeout(5); // less than the ten seconds that the client waits for a reply
            if ($job === null) {
                continue;
            }
            [$name] = json_decode($job->getData(), true); // a JSON array of arguments, whatever the protocol of the producer
            echo "Hello, $name\n";
            $beanstalk->delete($job);
        }
    } catch (ConnectionException | SocketException | ServerException $e) { // the broker may be restarted
        fwrite(STDERR, 'trying again in a second: ' . $e->getMessage() . "\n");
        sleep(1);
    }
}
