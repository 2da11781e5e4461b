<?php
// Puts a job into the tube greet: php beanstalk_producer.php [NAME]

require 'Pheanstalk/autoload.php'; // with Composer: vendor/autoload.php

[$host, $port] = explode(':', getenv('BEANSTALKD_SERVER') ?: '127.0.0.1:11300');
$beanstalk = Pheanstalk\Pheanstalk::create($host, (int) $port);

$job = $beanstalk->useTube('greet')->put(json_encode([$argv[1] ?? 'PHP']));
echo 'submitted ' . $job->getId() . "\n";
