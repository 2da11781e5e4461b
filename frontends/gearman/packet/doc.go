// Package packet is the binary framing of the Gearman protocol: the packet types, their fields, and the header. The
// front-end and the programs that move jobs over from gearmand share it. It knows no connections and no text commands.
//
// A packet, in both directions; all numbers big-endian:
//
//	0        4      8      12
//	├────────┼──────┼──────┼─────────┬─────┬─────────┬───┬───────────────┐
//	│ \0REQ  │ type │ size │ field   │ NUL │ field   │ … │ last field    │
//	└────────┴──────┴──────┴─────────┴─────┴─────────┴───┴───────────────┘
//	                       └───────────────── size bytes ────────────────┘
package packet
