package service

import (
	"encoding/base64"
	"encoding/json"
)

// encodeCursor encodes the position in a list as opaque text.
func encodeCursor(at any) string {
	return base64.RawURLEncoding.EncodeToString(toJSON(at))
}

// decodeCursor is the inverse of encodeCursor. An empty cursor is the beginning.
func decodeCursor(cursor string, at any) error {
	if cursor == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(b, at)
	}
	if err != nil {
		return invalid("cursor", "cursor is not one that this list has returned")
	}
	return nil
}
