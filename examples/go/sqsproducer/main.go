// Command sqsproducer sends a message to the queue greet: go run ./sqsproducer [NAME]
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

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
	// or that of the queue as it is
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("greet")})
	if err != nil {
		log.Fatal(err)
	}
	name := "Go"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	body, err := json.Marshal([]string{name})
	if err != nil {
		log.Fatal(err)
	}
	sent, err := client.SendMessage(ctx,
		&sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String(string(body))})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("submitted", *sent.MessageId)
}
