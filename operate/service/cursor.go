package service

import (
	"encoding/base64"
	"encoding/json"
)

// encodeCursor makes an opaque text of where a list goes on.
func encodeCursor(at any) string {
	b, err := json.Marshal(at)
	if err != nil {
		panic(err) // cursors are plain structs
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor reads what encodeCursor wrote; an empty cursor is the beginning.
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
