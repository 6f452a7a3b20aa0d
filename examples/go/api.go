// The API: it accepts access tokens that Gatehouse issued for it, with the scope that a route needs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	jwtmiddleware "github.com/auth0/go-jwt-middleware/v2"
	"github.com/auth0/go-jwt-middleware/v2/jwks"
	"github.com/auth0/go-jwt-middleware/v2/validator"
)

// scopes are the claims of an access token that the API reads beside the registered ones.
type scopes struct {
	Scope string `json:"scope"`
}

func (s *scopes) Validate(context.Context) error {
	if s.Scope == "" {
		return errors.New("the access token has no scope")
	}
	return nil
}

func newAPI(client *http.Client) (http.Handler, error) {
	issuer, err := url.Parse("https://" + os.Getenv("AUTH0_DOMAIN") + "/")
	if err != nil {
		return nil, err
	}
	keys := jwks.NewCachingProvider(issuer, 5*time.Minute, jwks.WithCustomClient(client))
	tokens, err := validator.New(keys.KeyFunc, validator.RS256, issuer.String(), []string{os.Getenv("AUTH0_AUDIENCE")},
		validator.WithCustomClaims(func() validator.CustomClaims { return &scopes{} }))
	if err != nil {
		return nil, err
	}
	api := http.NewServeMux()
	api.HandleFunc("GET /api/messages", messages)
	return jwtmiddleware.New(tokens.ValidateToken, jwtmiddleware.WithErrorHandler(unauthorized)).CheckJWT(api), nil
}

// unauthorized answers as RFC 6750 says; the middleware's own handler answers 400 where there is no token.
func unauthorized(w http.ResponseWriter, _ *http.Request, _ error) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "The access token is missing or not valid.", http.StatusUnauthorized)
}

func messages(w http.ResponseWriter, r *http.Request) {
	claims := r.Context().Value(jwtmiddleware.ContextKey{}).(*validator.ValidatedClaims)
	granted := claims.CustomClaims.(*scopes)
	w.Header().Set("Content-Type", "application/json")
	if !slices.Contains(strings.Fields(granted.Scope), "read:messages") {
		w.WriteHeader(http.StatusForbidden)
		json.NewEncoder(w).Encode(map[string]string{"message": "The access token lacks the scope read:messages."})
		return
	}
	json.NewEncoder(w).Encode(map[string]string{"message": "The API knows you as " + claims.RegisteredClaims.Subject})
}
