package simphone

import (
	"context"
	"net/http"
	"regexp"
)

// delivered is the preset text of a template with a code.
var delivered = regexp.MustCompile(`^([0-9]{8}) is your verification code\.`)

// LatestDelivered returns the digits that were delivered last to a user, whose reference is an id or a number in E.164, with their time.
func LatestDelivered(ctx context.Context, client *http.Client, simulatorURL, user string) (Codes, error) {
	answer, err := readChats(ctx, client, simulatorURL, user)
	if err != nil {
		return Codes{}, err
	}
	return answer.latest(deliveredIn)
}

// deliveredIn returns the delivered digits of a text; false for another text.
func deliveredIn(text string) (Codes, bool) {
	found := delivered.FindStringSubmatch(text)
	if found == nil {
		return Codes{}, false
	}
	return Codes{Digits: found[1]}, true
}
