// Package glob matches texts with patterns as Redis understands them: * matches any bytes, ? one byte, [ab] [a-z] [^a]
// one of a set, and \ takes the next byte literally. A pattern must match the whole text.
package glob
