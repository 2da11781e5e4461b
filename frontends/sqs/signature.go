package sqs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Signature Version 4: docs "Signing AWS API requests". The canonical request is
//
//	method \n path, encoded again \n query, sorted \n name:value \n for each signed header \n \n signed headers \n SHA-256 of the body

const (
	signAlgorithm = "AWS4-HMAC-SHA256"
	signTime      = "20060102T150405Z"
	maxSkew       = 15 * time.Minute
	maxPresigned  = 7 * 24 * time.Hour
)

// signature holds the parts of a request's signature.
type signature struct {
	key       string
	scope     []string // date, region, service, aws4_request
	headers   []string // signed, in lower case
	digest    string
	at        string
	presigned bool
	expires   time.Duration
}

// readSignature finds the signature of a request; nil: none.
func readSignature(r *http.Request) (*signature, error) {
	s := &signature{}
	query := r.URL.Query()
	var credential, headers string
	switch authorization := r.Header.Get("Authorization"); {
	case authorization != "":
		algorithm, rest, _ := strings.Cut(authorization, " ")
		if algorithm != signAlgorithm {
			return nil, refuse(incomplete, "Unsupported algorithm '%s'.", algorithm)
		}
		for part := range strings.SplitSeq(rest, ",") {
			switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
			case "Credential":
				credential = value
			case "SignedHeaders":
				headers = value
			case "Signature":
				s.digest = value
			}
		}
		s.at = r.Header.Get("X-Amz-Date")
		if at, err := http.ParseTime(r.Header.Get("Date")); s.at == "" && err == nil {
			s.at = at.UTC().Format(signTime)
		}
	case query.Get("X-Amz-Algorithm") != "":
		if query.Get("X-Amz-Algorithm") != signAlgorithm {
			return nil, refuse(incomplete, "Unsupported algorithm '%s'.", query.Get("X-Amz-Algorithm"))
		}
		credential, headers, s.digest = query.Get(
			"X-Amz-Credential",
		), query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Signature")
		seconds, err := strconv.Atoi(query.Get("X-Amz-Expires"))
		if err != nil || seconds <= 0 || time.Duration(seconds) > maxPresigned/time.Second {
			return nil, refuse(incomplete, "X-Amz-Expires must be between 1 and 604800.")
		}
		s.at, s.presigned, s.expires = query.Get("X-Amz-Date"), true, time.Duration(seconds)*time.Second
	default:
		return nil, nil // a request without a signature is not an error
	}
	parts := strings.Split(credential, "/")
	if len(parts) < 5 || headers == "" || s.digest == "" || s.at == "" {
		return nil, refuse(incomplete, "Authorization requires Credential, SignedHeaders, Signature and X-Amz-Date.")
	}
	n := len(parts) - 4
	s.key, s.scope, s.headers = strings.Join(parts[:n], "/"), parts[n:], strings.Split(headers, ";")
	return s, nil
}

// checkScope checks what needs neither the body nor the secret.
func (s *signature) checkScope(r *http.Request, now time.Time) error {
	at, err := time.Parse(signTime, s.at)
	if err != nil || s.scope[0] != s.at[:8] || s.scope[3] != "aws4_request" || !slices.Contains(s.headers, "host") {
		return refuse(wrongSignature, "The date or scope of the signature is not valid.")
	}
	if r.Header.Get("X-Amz-Target") != "" && !slices.Contains(s.headers, "x-amz-target") {
		// else a presigned URL allows any action
		return refuse(wrongSignature, "The header X-Amz-Target must be signed.")
	}
	if s.scope[2] != "sqs" {
		return refuse(wrongSignature, "Credential should be scoped to correct service: 'sqs'.")
	}
	life := maxSkew
	if s.presigned {
		life = s.expires
	}
	if now.Before(at.Add(-maxSkew)) || now.After(at.Add(life)) {
		return refuse(wrongSignature, "Signature expired or not yet current: %s is not within the allowed time of %s.",
			s.at, now.UTC().Format(signTime))
	}
	return nil
}

// check verifies a signature with the secret of its key.
func (s *signature) check(r *http.Request, body []byte, secret string) error {
	sum := sha256.Sum256([]byte(s.canonical(r, body)))
	text := signAlgorithm + "\n" + s.at + "\n" + strings.Join(s.scope, "/") + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + secret)
	for _, part := range s.scope {
		key = sign(key, part)
	}
	if want := hex.EncodeToString(sign(key, text)); !hmac.Equal([]byte(want), []byte(s.digest)) {
		return refuse(wrongSignature, "The request signature we calculated does not match the signature you provided.")
	}
	return nil
}

func sign(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonical is the canonical request, whose digest is signed.
func (s *signature) canonical(r *http.Request, body []byte) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + canonicalPath(r.URL) + "\n" + canonicalQuery(r.URL.Query()) + "\n")
	for _, name := range s.headers {
		b.WriteString(name + ":" + signedHeader(r, name) + "\n")
	}
	sum := sha256.Sum256(body)
	b.WriteString("\n" + strings.Join(s.headers, ";") + "\n" + hex.EncodeToString(sum[:]))
	return b.String()
}

func canonicalPath(u *url.URL) string {
	path := u.EscapedPath()
	if path == "" {
		return "/"
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = percentEncode(part)
	}
	return strings.Join(parts, "/")
}

func canonicalQuery(query url.Values) string {
	var pairs []string
	for name, values := range query {
		if name == "X-Amz-Signature" {
			continue
		}
		for _, value := range values {
			pairs = append(pairs, percentEncode(name)+"="+percentEncode(value))
		}
	}
	slices.SortFunc(pairs, func(a, b string) int {
		x, xv, _ := strings.Cut(a, "=")
		y, yv, _ := strings.Cut(b, "=")
		if x != y {
			return strings.Compare(x, y)
		}
		return strings.Compare(xv, yv)
	})
	return strings.Join(pairs, "&")
}

// signedHeader is the value of a header for the signature. net/http stores host and content-length separately.
func signedHeader(r *http.Request, name string) string {
	values := r.Header.Values(name)
	switch {
	case name == "host":
		values = []string{r.Host}
	case name == "content-length" && len(values) == 0:
		values = []string{strconv.FormatInt(r.ContentLength, 10)}
	}
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = strings.Join(strings.Fields(value), " ")
	}
	return strings.Join(words, ",")
}

// percentEncode encodes all but the unreserved characters of RFC 3986.
func percentEncode(text string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}
