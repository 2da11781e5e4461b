<?php
// Submits a job to the queue greet: php producer.php [NAME]

$client = new GearmanClient();
$client->addServers(getenv('GEARMAN_SERVER') ?: '127.0.0.1:4730');

$handle = $client->doBackground('greet', json_encode([$argv[1] ?? 'PHP']));
if ($client->returnCode() !== GEARMAN_SUCCESS) {
    fwrite(STDERR, $client->error() . "\n");
    exit(1);
}
echo "submitted $handle\n";
