package simulator

import (
	"crypto/sha256"
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Person is a user with a phone.
type Person struct {
	Name string `json:"name"`
	// Phone is the number of the SIM, in E.164.
	Phone string `json:"phone"`
	// Username is that of both messengers; empty for none.
	Username string `json:"username,omitempty"`
	// HidesNumber is true if WhatsApp gives businesses a user id and no number. It takes a username; a user with a username who
	// does not hide the number is known to businesses by both.
	HidesNumber bool `json:"hidesNumber,omitempty"`
	// WhatsAppID is what WhatsApp calls the number; what it makes of such a number if empty, which in Mexico and Brazil is
	// another one.
	WhatsAppID string `json:"whatsAppID,omitempty"`
	// TelegramPhone is what Telegram calls it; its digits if empty. Telegram knows accounts without a SIM: +888.
	TelegramPhone string `json:"telegramPhone,omitempty"`
}

// DefaultUsers are there from the start.
func DefaultUsers() []Person {
	return []Person{
		{Name: "Ada Lovelace", Phone: "+4915112345678"},
		{Name: "Luis Ibáñez", Phone: "+525512345678"},
		{Name: "Bia Souza", Phone: "+5531987654321"},
		{Name: "Noa Levi", Phone: "+972502345678", Username: "noa_levi", HidesNumber: true},
		{Name: "Mallory", Phone: "+4915198765432", Username: "mallory"},
	}
}

// user is a person with all that is on the phone.
type user struct {
	Person

	ID         string `json:"id"`
	TelegramID int64  `json:"telegramID"`

	chats []*chat // the one opened last is the last
}

var (
	e164       = regexp.MustCompile(`^\+[1-9][0-9]{4,14}$`)
	waDigits   = regexp.MustCompile(`^[1-9][0-9]{4,14}$`)
	tgPhone    = regexp.MustCompile(`^\+?[0-9]{3,20}$`)
	usernameOf = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]{2,31}$`)
)

// validate fills in what a person does not say, or returns what is wrong.
func (p *Person) validate() *failure {
	p.Name = strings.TrimSpace(p.Name)
	switch {
	case p.Name == "":
		p.Name = "Unnamed"
	case len([]rune(p.Name)) > maxNameRunes:
		return badRequest("name", "at most 128 characters")
	}
	p.Username = strings.TrimPrefix(p.Username, "@")
	switch {
	case !e164.MatchString(p.Phone):
		return badRequest("phone", "want the number in E.164, as +4915112345678")
	case p.Username != "" && !usernameOf.MatchString(p.Username):
		return badRequest("username", "want 3 to 32 letters, digits, dots and underscores, a letter first")
	case p.HidesNumber && p.Username == "":
		return badRequest("username", "only users with a username can hide their number")
	}
	if p.WhatsAppID == "" {
		p.WhatsAppID = whatsAppID(p.Phone)
	}
	if p.TelegramPhone == "" {
		p.TelegramPhone = p.Phone[1:]
	}
	switch {
	case !waDigits.MatchString(p.WhatsAppID):
		return badRequest("whatsAppID", "want 5 to 15 digits")
	case !tgPhone.MatchString(p.TelegramPhone):
		return badRequest("telegramPhone", "want digits, with or without a plus before them")
	}
	return nil
}

var (
	mexican   = regexp.MustCompile(`^52([2-9][0-9]{9})$`)
	brazilian = regexp.MustCompile(`^55([3-9][1-9])9([6-9][0-9]{7})$`)
)

// whatsAppID returns what WhatsApp calls a number: Mexican accounts keep the 1 that was dropped in 2019, and Brazilian ones
// outside the south-east, whose area codes begin with 3 and more, lack the ninth digit.
func whatsAppID(phone string) string {
	digits := strings.TrimPrefix(phone, "+")
	if m := mexican.FindStringSubmatch(digits); m != nil {
		return "521" + m[1]
	}
	if m := brazilian.FindStringSubmatch(digits); m != nil {
		return "55" + m[1] + m[2]
	}
	return digits
}

// businessScopedID returns the id of the user that this business, and no other, knows.
func (u *user) businessScopedID(b *business) string {
	sum := sha256.Sum256([]byte(b.ID + "\x00" + u.ID + "\x00" + u.Phone))
	digits := strconv.FormatUint(binary.BigEndian.Uint64(sum[:])>>1, 10)
	return u.countryCode() + "." + digits
}

// countryCode returns the country of the number; ZZ if there is none.
func (u *user) countryCode() string {
	number, err := phonenumbers.Parse(u.Phone, "")
	if err != nil {
		return "ZZ"
	}
	region := phonenumbers.GetRegionCodeForNumber(number)
	if len(region) != 2 || region[0] < 'A' {
		return "ZZ"
	}
	return region
}

func (u *user) firstName() string { return strings.Fields(u.Name)[0] }

func (u *user) lastName() string {
	_, last, _ := strings.Cut(u.Name, " ")
	return last
}

// phones are the users with all that is on their phones.
type phones struct {
	*hub

	whatsApp *whatsApp
	telegram *telegram

	people   []Person // of the start
	users    []*user
	lastUser int
}

// findUser returns a user by id, or by number with its plus.
func (p *phones) findUser(ref string) (*user, *failure) {
	for _, u := range p.users {
		if u.ID == ref || u.Phone == ref {
			return u, nil
		}
	}
	return nil, &failure{404, "unknown_user", "", "no user has that id or number; GET /sim/users lists them"}
}

// addUser adds a person.
func (p *phones) addUser(person Person) (*user, *failure) {
	if f := person.validate(); f != nil {
		return nil, f
	}
	if len(p.users) >= maxUsers {
		f := tooMany(maxUsers, "users")
		f.message += ", and DELETE /sim/users/{user} one of them"
		return nil, f
	}
	for _, other := range p.users {
		if other.Phone == person.Phone {
			return nil, &failure{409, "number_taken", "phone", "user " + other.ID + " has that number"}
		}
	}
	p.lastUser++
	u := &user{Person: person, ID: strconv.Itoa(p.lastUser), TelegramID: firstTelegramID + int64(p.lastUser)}
	p.users = append(p.users, u)
	p.publish(event{Type: "user", User: u.ID})
	return u, nil
}

// firstTelegramID is beyond 32 bits, as the ids of new accounts are.
const firstTelegramID = 7_300_000_000

// addFirstUsers adds the users of the start. The lock is held.
func (p *phones) addFirstUsers() {
	for _, person := range p.people {
		if _, f := p.addUser(person); f != nil {
			p.log.Info("a user is left out", "reason", f.Error())
		}
	}
}
