// Command demo plays the end user of `make demo` in a browser: it opens the page of a request on a phone, taps the button, lets the
// simulated user send the message, and prints each title of the page until the number is verified.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/browser"
)

func main() {
	url := flag.String("page", "", "the pageURL of init")
	user := flag.String("user", "", "the address of the simulated user, below that of the simulator")
	picture := flag.String("screenshot", "", "the file for a picture of the last state")
	flag.Parse()
	if err := playPage(*url, *user, *picture); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// playPage opens the page and follows it to its end.
func playPage(url, user, picture string) (err error) {
	b, err := browser.Start()
	if err != nil {
		return fmt.Errorf("start browser: %w", err)
	}
	defer b.Stop()
	a := &audience{}
	defer func() {
		for _, cleanup := range a.cleanups {
			cleanup()
		}
		switch reason := recover().(type) {
		case nil:
		case failure:
			err = reason
		default:
			panic(reason)
		}
	}()
	page := b.NewPage(a)
	page.EmulatePhone()
	page.HandLinksToApps()
	page.Open(url)
	title := awaitOtherTitle(page, "")
	page.Press("#open")
	link := page.AwaitApp()
	fmt.Fprintln(os.Stdout, "tapped, which opens", link)
	title = awaitOtherTitle(page, title)
	if err := sendMessage(user, link); err != nil {
		return fmt.Errorf("send message as the user: %w", err)
	}
	fmt.Fprintln(os.Stdout, "the user tapped Send")
	awaitOtherTitle(page, title)
	page.Await("document.body.dataset.state", gomega.Equal("verified"))
	if err := os.WriteFile(picture, page.TakeScreenshot(), 0o600); err != nil {
		return fmt.Errorf("save picture: %w", err)
	}
	fmt.Fprintln(os.Stdout, "a picture of it is in", picture)
	return nil
}

// awaitOtherTitle waits until the page has another title, and returns and prints it.
func awaitOtherTitle(page *browser.Page, title string) string {
	page.AwaitText("h1", gomega.And(gomega.Not(gomega.BeEmpty()), gomega.Not(gomega.Equal(title))))
	title = fmt.Sprint(page.Eval(`document.querySelector("h1").innerText`))
	fmt.Fprintf(os.Stdout, "the page says: %s\n", title)
	return title
}

// sendMessage has the simulated user open a link and send the text.
func sendMessage(user, link string) error {
	body, err := json.Marshal(map[string]string{"link": link})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, user+"/send", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		answer, err := io.ReadAll(response.Body)
		return errors.Join(fmt.Errorf("%s: %s", response.Status, answer), err)
	}
	return nil
}

// audience is the test of a page that is none.
type audience struct{ cleanups []func() }

// failure is what a page did not do.
type failure struct{ error }

func (a *audience) Helper() {}

func (a *audience) Cleanup(f func()) { a.cleanups = append(a.cleanups, f) }

func (a *audience) Errorf(format string, args ...any) { a.Fatalf(format, args...) }

func (a *audience) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }
