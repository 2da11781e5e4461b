// Command sqsworker works on the queue greet until it is stopped: go run ./sqsworker
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func main() {
	client := sqs.New(sqs.Options{
		BaseEndpoint: aws.String(cmp.Or(os.Getenv("AWS_ENDPOINT_URL_SQS"), "http://127.0.0.1:9324")),
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("any", "any", ""),
	})
	ctx := context.Background()
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("greet")})
	if err != nil {
		log.Fatal(err)
	}
	for {
		if err := work(ctx, client, queue.QueueUrl); err != nil { // the broker may be restarted
			log.Println("trying again in a second:", err)
			time.Sleep(time.Second)
		}
	}
}

// work receives messages once, greets and deletes them.
func work(ctx context.Context, client *sqs.Client, queue *string) error {
	received, err := client.ReceiveMessage(ctx,
		&sqs.ReceiveMessageInput{QueueUrl: queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 20})
	if err != nil {
		return err
	}
	for _, m := range received.Messages {
		var args []string // whatever the protocol of the producer
		if err := json.Unmarshal([]byte(*m.Body), &args); err != nil || len(args) != 1 {
			log.Printf("%s is not an array of one name: it comes back when its time is over", *m.Body)
			continue
		}
		fmt.Println("Hello,", args[0])
		if _, err := client.DeleteMessage(ctx,
			&sqs.DeleteMessageInput{QueueUrl: queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return err
		}
	}
	return nil
}
