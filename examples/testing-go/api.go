// Package notes is a small API: each user has notes. It trusts access tokens of one issuer, with the scope that a route
// needs.
package notes

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	jwtmiddleware "github.com/auth0/go-jwt-middleware/v2"
	"github.com/auth0/go-jwt-middleware/v2/jwks"
	"github.com/auth0/go-jwt-middleware/v2/validator"
)

// scopes are the claim of an access token that says what it allows.
type scopes struct {
	Scope string `json:"scope"`
}

// Validate implements validator.CustomClaims: each route looks at the scopes.
func (scopes) Validate(context.Context) error { return nil }

// NewAPI returns the API. The client gets the keys of the issuer.
func NewAPI(issuer, audience string, client *http.Client) (http.Handler, error) {
	address, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	keys := jwks.NewCachingProvider(address, 5*time.Minute, jwks.WithCustomClient(client))
	tokens, err := validator.New(
		keys.KeyFunc, validator.RS256, issuer, []string{audience},
		validator.WithCustomClaims(func() validator.CustomClaims { return &scopes{} }),
	)
	if err != nil {
		return nil, err
	}

	var lock sync.Mutex
	notes := map[string][]string{}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /notes", withScope("read:notes", func(w http.ResponseWriter, r *http.Request, user string) {
		lock.Lock()
		defer lock.Unlock()
		json.NewEncoder(w).Encode(append([]string{}, notes[user]...))
	}))
	routes.HandleFunc("POST /notes", withScope("write:notes", func(w http.ResponseWriter, r *http.Request, user string) {
		var note struct{ Text string }
		if json.NewDecoder(r.Body).Decode(&note) != nil {
			http.Error(w, "the body is not a note", http.StatusBadRequest)
			return
		}
		lock.Lock()
		defer lock.Unlock()
		notes[user] = append(notes[user], note.Text)
		w.WriteHeader(http.StatusCreated)
	}))
	return jwtmiddleware.New(tokens.ValidateToken, jwtmiddleware.WithErrorHandler(refuse)).CheckJWT(routes), nil
}

// refuse answers a request whose token is missing or not valid.
func refuse(w http.ResponseWriter, _ *http.Request, _ error) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "a valid access token is required", http.StatusUnauthorized)
}

// withScope calls the handler, with the id of the user, if the token has the scope.
func withScope(scope string, handle func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		claims := r.Context().Value(jwtmiddleware.ContextKey{}).(*validator.ValidatedClaims)
		if !slices.Contains(strings.Fields(claims.CustomClaims.(*scopes).Scope), scope) {
			http.Error(w, "the token does not have the scope "+scope, http.StatusForbidden)
			return
		}
		handle(w, r, claims.RegisteredClaims.Subject)
	}
}
