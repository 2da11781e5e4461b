// Package prototext stands for the text form of protobuf messages, which the broker does not write.
package prototext

import "fmt"

// Format formats a message for people.
func Format(m any) string { return fmt.Sprintf("%+v", m) }
