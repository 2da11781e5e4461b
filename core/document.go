package core

// WriteDocuments stores named documents. They are kept on disk only, not in memory, so there may be many and they may be
// large, unlike meta entries. A nil Value removes one. Names start with the owner's name and a slash. In an Atomic, they
// are stored in the same commit as the other operations. Reply: Accepted.
type WriteDocuments struct {
	changing
	Tag       uint64
	Documents []MetaEntry
}

// ReadDocuments lists the documents whose names start with Prefix and come after After, in byte order of their names, as of
// a recent commit. Reply: Answered with Documents; an empty page is the last one. With durability none, no documents are
// stored or listed.
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
