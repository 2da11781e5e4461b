package core

// WriteDocuments stores named documents, which are kept on disk alone: unlike meta entries they may be many and large. A nil
// Value removes one. Names start with the owner's name and a slash. In an Atomic they are stored in the commit of its other
// operations. Reply: Accepted.
type WriteDocuments struct {
	changing
	Tag       uint64
	Documents []MetaEntry
}

// ReadDocuments lists the documents whose names start with Prefix and come after After, in byte order of their names, as
// of a recent commit. Reply: Answered with Documents; a page without any is the last one. Nothing is stored, and nothing is
// listed, with durability none.
type ReadDocuments struct {
	reading
	Tag    uint64
	Prefix string
	After  string
	Limit  int // at most 10,000; zero: 1,000. A page also ends when it is large.
}

// TagOf implements Op.
func (o *WriteDocuments) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *ReadDocuments) TagOf() uint64 { return o.Tag }
