package browser

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Page is a response as a browser shows it.
type Page struct {
	URL    *url.URL
	Status int
	Header http.Header
	Body   string
	Forms  []Form
	Links  []Link
	// Pictures are the sources of its pictures.
	Pictures []string
	// Data are the data attributes of its elements, without their prefix.
	Data map[string]string
}

// Form is a form of a page.
type Form struct {
	// Action is the absolute URL that it is sent to.
	Action string
	// Fields are the names of what its user fills in, and Hidden what is sent besides.
	Fields []string
	Hidden map[string]string
}

// Link is a link of a page.
type Link struct{ ID, URL string }

func newPage(r *http.Response, content []byte) (*Page, error) {
	p := &Page{URL: r.Request.URL, Status: r.StatusCode, Header: r.Header, Body: string(content), Data: map[string]string{}}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		return p, nil
	}
	document, err := html.Parse(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("parse page: %w", err)
	}
	for n := range document.Descendants() {
		if n.Type == html.ElementNode {
			p.addElement(n)
		}
	}
	return p, nil
}

func (p *Page) addElement(n *html.Node) {
	attributes := map[string]string{}
	for _, a := range n.Attr {
		attributes[a.Key] = a.Val
		if name, ok := strings.CutPrefix(a.Key, "data-"); ok {
			p.Data[name] = a.Val
		}
	}
	switch n.Data {
	case "a":
		p.Links = append(p.Links, Link{attributes["id"], p.resolve(attributes["href"])})
	case "img":
		p.Pictures = append(p.Pictures, attributes["src"])
	case "form":
		p.Forms = append(p.Forms, Form{Action: p.resolve(attributes["action"]), Hidden: map[string]string{}})
	case "input":
		if len(p.Forms) == 0 || attributes["name"] == "" {
			return
		}
		form := &p.Forms[len(p.Forms)-1]
		if attributes["type"] == "hidden" {
			form.Hidden[attributes["name"]] = attributes["value"]
		} else {
			form.Fields = append(form.Fields, attributes["name"])
		}
	}
}

func (p *Page) resolve(reference string) string {
	u, err := p.URL.Parse(reference)
	if err != nil {
		return reference
	}
	return u.String()
}

// Link returns the URL of the link with an id; empty if there is none.
func (p *Page) Link(id string) string {
	for _, l := range p.Links {
		if l.ID == id {
			return l.URL
		}
	}
	return ""
}

// FormWith returns the form that has a field; false if there is none.
func (p *Page) FormWith(field string) (Form, bool) {
	i := slices.IndexFunc(p.Forms, func(f Form) bool { return slices.Contains(f.Fields, field) })
	if i < 0 {
		return Form{}, false
	}
	return p.Forms[i], true
}

// allowsForm reports whether the Content-Security-Policy of the page lets a form go to a URL.
func (p *Page) allowsForm(to *url.URL) bool {
	for directive := range strings.SplitSeq(p.Header.Get("Content-Security-Policy"), ";") {
		words := strings.Fields(directive)
		if len(words) == 0 || words[0] != "form-action" {
			continue
		}
		origin := to.Scheme + "://" + to.Host
		return slices.ContainsFunc(words[1:], func(source string) bool {
			return source == "'self'" && origin == p.URL.Scheme+"://"+p.URL.Host || source == origin || source == to.Scheme+":" ||
				strings.HasPrefix(source, origin+"/")
		})
	}
	return true
}
