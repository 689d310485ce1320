package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/page/view"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/tokenbucket"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Prefix begins the paths of the pages, below the path of the project's baseURL.
const Prefix = "/v/"

// The operations of a page, below its own path.
const (
	pathEvents = "events"
	pathState  = "state"
	pathOpened = "opened"
	pathLogo   = "logo"
	pathWrong  = "wrong-number"

	// Of verification.LevelSession.
	pathConfirm = "confirm"
	pathReturn  = "return"
	pathCancel  = "cancel"
)

// Options configure NewHandler.
type Options struct {
	// Settings returns the current settings of the project; never nil. Required.
	Settings func() *settings.Settings
	// Service reads the requests. Required.
	Service *verification.Service
	// Link returns the link that opens the messenger with the code of a request, by its Method. Required.
	Link func(*settings.Settings, *verification.Request, verification.Code) string
	// PhoneURL is the page of simulated phones that the pages lead to, with the link behind #, and that they warn of; empty for the
	// messengers.
	PhoneURL string
	// Draining returns a channel that is closed when the server of a request drains; nil for none.
	Draining func(context.Context) <-chan struct{}
	// Clock is the source of the time; nil for the real clock.
	Clock clock.Clock
	// Log gets what goes wrong. Its zero value logs nothing.
	Log logr.Logger
	// Registerer gets the metrics; nil for none.
	Registerer prometheus.Registerer
	// LogoFile is the picture above the page, read again when it changes; empty for none.
	LogoFile string
	// Holds limits the pages that follow their request; nil for a limiter of their own, by boundedhttp.Budget.
	Holds *boundedhttp.HoldLimiter
}

// Handler serves the pages of one project. It is safe for concurrent use.
type Handler struct {
	Options

	logo      *logo
	calls     *tokenbucket.Limiter[string] // by request id
	followers followLimiter
	// checking has the ids of the requests with a code that is being checked.
	checking  sync.Map
	following prometheus.Gauge
	refused   *prometheus.CounterVec
	origins   *http.CrossOriginProtection
}

// The reasons why a page is refused, as the metric names them.
const (
	refusedTicket = "ticket"
	refusedPath   = "path"
	refusedRate   = "rate"
	refusedFollow = "following"
	refusedOrigin = "origin"
)

// NewHandler returns the handler of the paths that begin with Prefix, with its metrics registered.
func NewHandler(o Options) (*Handler, error) {
	if o.Settings == nil || o.Service == nil || o.Link == nil {
		return nil, errors.New("the page needs Settings, Service and Link")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Holds == nil {
		o.Holds = boundedhttp.NewHoldLimiter(boundedhttp.Budget())
	}
	h := &Handler{
		Options: o, logo: &logo{file: o.LogoFile, clock: o.Clock, log: o.Log}, calls: tokenbucket.NewLimiter[string](maxBuckets),
		followers: followLimiter{holds: o.Holds}, origins: http.NewCrossOriginProtection(),
		following: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "phoneproof_pages_following", Help: "Open pages that follow their request at the moment.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_page_refusals_total",
			Help: "Calls of pages that were refused: ticket (not one of ours), path (there is no such page), rate (one page asked too often), " +
				"following (too many open pages at once) or origin (a form of another site).",
		}, []string{"reason"}),
	}
	for _, reason := range []string{refusedTicket, refusedPath, refusedRate, refusedFollow, refusedOrigin} {
		h.refused.WithLabelValues(reason)
	}
	if o.Registerer == nil {
		return h, nil
	}
	for _, collector := range []prometheus.Collector{h.following, h.refused} {
		if err := o.Registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics of the page: %w", err)
		}
	}
	return h, nil
}

// visit is one call of a page.
type visit struct {
	w        http.ResponseWriter
	r        *http.Request
	settings *settings.Settings
	// path is the path of the page for browsers.
	path   string
	ticket string
	ticketTarget
	request verification.Request
	// marks are the messengers that its user opened.
	marks []verification.Method
	// slot, changes and unsubscribe are those of a call that follows its request; nil for others. changes gets a value after each
	// change of the request.
	slot        *boundedhttp.Hold
	changes     <-chan struct{}
	unsubscribe func()
	// timer is that of a call that waits, used again for each wait.
	timer clock.Timer
}

// ServeHTTP answers what is below Prefix.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := h.Settings()
	rest, found := strings.CutPrefix(r.URL.Path, s.PathPrefix+Prefix)
	if !found {
		rest, found = strings.CutPrefix(r.URL.Path, Prefix)
	}
	if !found || s.Page == nil {
		h.refuse(w, r, http.StatusNotFound, refusedPath)
		return
	}
	setCommonHeaders(w.Header(), s)
	ticket, operation, _ := strings.Cut(rest, "/")
	leadsTo, valid := openTicket(s, ticket, h.Clock.Now())
	if !valid {
		h.refuse(w, r, http.StatusNotFound, refusedTicket)
		return
	}
	v := &visit{
		w: w, r: r, settings: s, path: s.PathPrefix + Prefix + ticket, ticket: ticket,
		ticketTarget: leadsTo, marks: readMarks(r, leadsTo.id),
	}
	defer h.endFollowing(v)
	// It is called here and not deeper: the stack of each open page is memory.
	if serve := h.admitVisit(v, operation); serve != nil {
		serve(v)
	}
}

// admitVisit reads the request of a call with a ticket of ours, and returns what serves it; nil if the call was answered.
func (h *Handler) admitVisit(v *visit, operation string) func(*visit) {
	serve, method := h.operationOf(operation)
	switch {
	case serve == nil:
		h.refuse(v.w, v.r, http.StatusNotFound, refusedPath)
		return nil
	case v.r.Method != method && (v.r.Method != http.MethodHead || method != http.MethodGet):
		v.w.Header().Set("Allow", method)
		v.w.WriteHeader(http.StatusMethodNotAllowed)
		return nil
	}
	if !h.calls.Take(v.id, callRate, h.Clock.Now()) {
		askToComeBack(v, operation)
		h.refuse(v.w, v.r, http.StatusTooManyRequests, refusedRate)
		return nil
	}
	// A stream begins before its request is read: no change is missed, and a refusal costs no read.
	if operation == pathEvents && v.r.Method == http.MethodGet && !h.beginFollowing(v) {
		v.w.Header().Set("Retry-After", "10")
		v.w.Header().Set("Connection", "close") // otherwise refused pages would hold connections
		h.refuse(v.w, v.r, http.StatusTooManyRequests, refusedFollow)
		return nil
	}
	err := h.readRequest(v)
	switch {
	case errors.Is(err, verification.ErrNotFound):
		h.refuse(v.w, v.r, http.StatusNotFound, refusedTicket)
	case err != nil:
		h.Log.Info("page cannot read its request", "reason", err.Error())
		askToComeBack(v, operation)
		if operation == "" {
			h.write(v, http.StatusServiceUnavailable, h.newView(v, view.Unavailable))
			return nil
		}
		v.w.WriteHeader(http.StatusServiceUnavailable)
	default:
		return serve
	}
	return nil
}

// askToComeBack makes the browser load a page again that could not be shown, also after its forms and without its script.
func askToComeBack(v *visit, operation string) {
	v.w.Header().Set("Retry-After", "5")
	switch {
	case operation == "":
		v.w.Header().Set("Refresh", "5")
	case v.r.Method == http.MethodPost:
		v.w.Header().Set("Refresh", "5;url="+v.path)
	}
}

// operationOf returns what serves an operation of a page, and its HTTP method; nil for one that there is not.
func (h *Handler) operationOf(name string) (serve func(*visit), method string) {
	switch name {
	case "":
		return h.servePage, http.MethodGet
	case pathEvents:
		return h.serveEvents, http.MethodGet
	case pathState:
		return h.serveState, http.MethodGet
	case pathLogo:
		return h.serveLogo, http.MethodGet
	case pathOpened:
		return h.serveOpened, http.MethodPost
	case pathWrong:
		return h.serveWrongNumber, http.MethodPost
	case pathConfirm:
		return h.serveConfirm, http.MethodPost
	case pathReturn:
		return h.serveReturn, http.MethodGet
	case pathCancel:
		return h.serveCancel, http.MethodPost
	default:
		return nil, ""
	}
}

// callerName is the name under which a store bounds what all pages ask for, beside the API keys. No key has a space in its name.
const callerName = "pages of users"

// readRequest reads the request of a visit as this replica knows it. An end that the clock alone tells is confirmed, because
// another replica may have verified the request in time. A browser that goes does not end it: a cancellable context of an
// open page would keep a map of such children.
func (h *Handler) readRequest(v *visit) error {
	ctx, cancel := context.WithTimeout(
		verification.WithCaller(context.WithoutCancel(v.r.Context()), verification.Client(callerName)), storeTime)
	defer cancel()
	request, err := h.Service.StatusCached(ctx, v.id)
	if err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	v.request = request
	// A ticket from the chat is of a proven request, which this replica may not know yet.
	if r := &v.request; r.Phase == verification.Pending && (r.PhaseAt(h.Clock.Now()).Final() || !v.hasCode && !r.IsProven()) {
		return h.confirmEnd(ctx, v)
	}
	return nil
}

// confirmEnd reads the present state of a request. Inlined, it would make the stack of each open page larger.
//
//go:noinline
func (h *Handler) confirmEnd(ctx context.Context, v *visit) error {
	request, err := h.Service.Status(ctx, v.id)
	if err != nil {
		return fmt.Errorf("confirm end of request: %w", err)
	}
	v.request = request
	return nil
}

// refuse answers a call that is none of a page, with nothing that shows why.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, reason string) {
	h.refused.WithLabelValues(reason).Inc()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		fmt.Fprintln(w, http.StatusText(status))
	}
}

// setCommonHeaders sets what each answer has. A page is of one moment and one person, and no other site learns its address.
func setCommonHeaders(header http.Header, s *settings.Settings) {
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send Origin: null with the page's own forms
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Robots-Tag", "noindex, nofollow")
	if len(s.Page.FrameAncestors) == 0 {
		header.Set("X-Frame-Options", "DENY")
	}
}

// servePage answers with the page. It changes nothing: previews and scanners of links get the same.
func (h *Handler) servePage(v *visit) {
	h.write(v, http.StatusOK, h.viewOf(v))
}

// write answers with a page.
func (h *Handler) write(v *visit, status int, content *view.View) {
	shown, err := view.Render(content)
	if err != nil {
		h.Log.Error(err, "page cannot be rendered")
		v.w.WriteHeader(http.StatusInternalServerError)
		return
	}
	header := v.w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", view.ContentSecurityPolicy(content, v.settings.Page.FrameAncestors))
	header.Set("Vary", "Accept-Language, Cookie")
	v.w.WriteHeader(status)
	v.w.Write(shown) //nolint:errcheck // the browser has gone
}

// newView returns a page in a state with what does not depend on its request.
func (h *Handler) newView(v *visit, state view.State) *view.View {
	s := v.settings
	out := &view.View{
		Language: view.MatchLanguage(s.Page.Languages, v.request.Locale, v.r.Header.Get("Accept-Language")),
		State:    state, DisplayName: s.DisplayName,
		PageURL: v.path, Framed: len(s.Page.FrameAncestors) > 0, Accent: s.Page.AccentColor, OnAccent: s.Page.OnAccent,
		Session: v.request.Terms.Level == verification.LevelSession, Test: v.request.Test, Simulated: h.PhoneURL != "",
		FormTargets: formTargets(s.Page),
	}
	if h.logo.currentPicture() != nil {
		out.LogoURL = v.path + "/" + pathLogo
	}
	return out
}

// viewOf returns what the page shows.
func (h *Handler) viewOf(v *visit) *view.View {
	s, r, now := v.settings, &v.request, h.Clock.Now()
	labels, method := s.TextsIn(r.Locale), methodOf(s, v, now)
	out := h.newView(v, stateOf(s, r, method, v.choosesMethod(), slices.Contains(v.marks, method), now))
	out.Progress, out.DisplayName, out.MaskedNumber = progressOf(r, now), s.DisplayNameOf(r), r.Phone.String()
	out.ReturnURL, out.Method = h.returnLink(v, now), method
	out.ConfirmLabel, out.NotMeLabel = labels.ButtonConfirm, labels.ButtonNotMe
	out.TriesUsedUp = r.HintAt(now) == verification.HintWrongCode
	out.Purpose, out.TimeLeft = s.PurposeIn(out.Language, r), r.EndsAt().Sub(now)
	out.Scanned, out.FromChat = v.r.URL.Query().Has(scanned), !v.hasCode && len(v.marks) == 0
	open := !isFinal(out.State) && !r.IsProven()
	switch out.AsksCode = r.DeliversCode() && (!open || !v.choosesMethod()); {
	case out.AsksCode && open:
		out.TextURL, out.TextDelay = v.path+"?method="+string(r.Method), r.CreatedAt.Add(codeTime).Sub(now)
	case r.DeliversCode() && open:
		out.CodeURL = v.path
	}
	switch {
	case out.State == view.Code:
		out.Method = r.Method
	case !isFinal(out.State) && out.State != view.Unavailable && out.State != view.Digits && !r.Test:
		h.addMessengers(v, out)
	}
	return out
}

// choosesMethod reports whether the user chose a messenger, in place of the code if one was sent.
func (v *visit) choosesMethod() bool { return v.r.URL.Query().Has("method") }

// scanned marks the address of a page that a phone opens by the QR code of another screen.
const scanned = "scanned"

// addMessengers adds the link that opens the messenger of a page, and the other messengers.
func (h *Handler) addMessengers(v *visit, out *view.View) {
	s, r, suffix := v.settings, &v.request, ""
	if out.Scanned {
		suffix = "&" + scanned
	}
	for _, other := range usableMethods(s, r) {
		if other != out.Method {
			out.Others = append(out.Others, view.Choice{Method: other, URL: v.path + "?method=" + string(other) + suffix})
		}
	}
	if !v.hasCode {
		return
	}
	asked := *r
	asked.Method = out.Method
	out.Link = h.Link(s, &asked, v.code)
	short := s.BaseURL + Prefix + v.ticket + "?method=" + string(out.Method) + "&" + scanned
	if h.PhoneURL != "" {
		out.Link, short = h.PhoneURL+"#"+out.Link, h.PhoneURL
	}
	out.QR = out.Link
	if len(out.QR) > directQR {
		out.QR = short
	}
}

// methodOf returns the messenger of a page at now: the one that proved or verified the number, that its user changed to, or that the
// latest hint is about, as far as it can be used; else the first that can.
func methodOf(s *settings.Settings, v *visit, now time.Time) verification.Method {
	r := &v.request
	if r.PhaseAt(now) == verification.Verified || r.IsProven() {
		return r.UsedMethod()
	}
	usable := usableMethods(s, r)
	for _, wanted := range []verification.Method{verification.Method(v.r.URL.Query().Get("method")), methodOfHint(s, r.HintOfMessage(now))} {
		if slices.Contains(usable, wanted) {
			return wanted
		}
	}
	return append(usable, r.Method)[0]
}

// until returns how long it is until then.
func (h *Handler) until(end time.Time) time.Duration { return end.Sub(h.Clock.Now()) }
