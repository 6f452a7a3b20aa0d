// The web application: it logs users in, and calls the API for them.
package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"html/template"
	"log"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/joho/godotenv"
	"golang.org/x/oauth2"
)

// A login is what one browser has: a request that waits for its callback, then a user and an access token.
type login struct {
	State, Nonce, Verifier string
	Email, AccessToken     string
}

type application struct {
	home     string
	provider *oidc.Provider
	oauth2   oauth2.Config
	client   *http.Client

	mutex  sync.Mutex
	logins map[string]login // by the value of the cookie, in the memory of this process
}

func main() {
	if err := godotenv.Load(); err != nil {
		log.Fatal(err)
	}
	client, err := trusting("data/tls/ca.pem")
	if err != nil {
		log.Fatal(err)
	}
	ctx := oidc.ClientContext(context.Background(), client)
	provider, err := oidc.NewProvider(ctx, "https://"+os.Getenv("AUTH0_DOMAIN")+"/")
	if err != nil {
		log.Fatal(err)
	}
	app := &application{
		home:     "http://localhost:" + os.Getenv("PORT"),
		provider: provider,
		client:   client,
		logins:   map[string]login{},
	}
	app.oauth2 = oauth2.Config{
		ClientID:     os.Getenv("AUTH0_CLIENT_ID"),
		ClientSecret: os.Getenv("AUTH0_CLIENT_SECRET"),
		Endpoint:     provider.Endpoint(),
		RedirectURL:  app.home + "/callback",
		Scopes:       []string{oidc.ScopeOpenID, "profile", "email", "read:messages"},
	}
	api, err := newAPI(client)
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/api/", api)
	http.Handle("/static/", http.StripPrefix("/static/", http.FileServer(http.Dir("static"))))
	http.HandleFunc("/{$}", app.showHome)
	http.HandleFunc("/login", app.logIn)
	http.HandleFunc("/callback", app.callback)
	http.HandleFunc("/messages", app.showMessages)
	http.HandleFunc("/logout", app.logOut)
	log.Print("The application is at ", app.home)
	log.Fatal(http.ListenAndServe("localhost:"+os.Getenv("PORT"), nil))
}

// trusting returns a client that also trusts the certificate authority of Gatehouse on this machine. In production the
// certificate of Gatehouse is one that everybody trusts.
func trusting(file string) (*http.Client, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	roots.AppendCertsFromPEM(pem)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}, nil
}

func (app *application) showHome(w http.ResponseWriter, r *http.Request) {
	show(w, app.loginOf(r), "")
}

func (app *application) logIn(w http.ResponseWriter, r *http.Request) {
	waiting := login{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	app.keep(w, waiting)
	http.Redirect(w, r, app.oauth2.AuthCodeURL(waiting.State, oidc.Nonce(waiting.Nonce),
		oauth2.S256ChallengeOption(waiting.Verifier),
		oauth2.SetAuthURLParam("audience", os.Getenv("AUTH0_AUDIENCE"))), http.StatusFound)
}

func (app *application) callback(w http.ResponseWriter, r *http.Request) {
	waiting := app.loginOf(r)
	app.forget(r)
	if waiting.State == "" || r.FormValue("state") != waiting.State {
		http.Error(w, "This login was not started in this browser.", http.StatusBadRequest)
		return
	}
	ctx := oidc.ClientContext(r.Context(), app.client)
	token, err := app.oauth2.Exchange(ctx, r.FormValue("code"), oauth2.VerifierOption(waiting.Verifier))
	if err != nil {
		http.Error(w, "The login failed.", http.StatusBadGateway)
		return
	}
	raw, _ := token.Extra("id_token").(string)
	idToken, err := app.provider.Verifier(&oidc.Config{ClientID: app.oauth2.ClientID}).Verify(ctx, raw)
	if err != nil || idToken.Nonce != waiting.Nonce {
		http.Error(w, "The ID token is not valid.", http.StatusBadGateway)
		return
	}
	var claims struct{ Email string }
	if err := idToken.Claims(&claims); err != nil {
		http.Error(w, "The ID token has no e-mail address.", http.StatusBadGateway)
		return
	}
	app.keep(w, login{Email: claims.Email, AccessToken: token.AccessToken})
	http.Redirect(w, r, "/", http.StatusFound)
}

func (app *application) showMessages(w http.ResponseWriter, r *http.Request) {
	user := app.loginOf(r)
	if user.Email == "" {
		http.Redirect(w, r, "/login", http.StatusFound)
		return
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, app.home+"/api/messages", nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	request.Header.Set("Authorization", "Bearer "+user.AccessToken)
	response, err := app.client.Do(request)
	if err != nil {
		http.Error(w, "The API cannot be reached.", http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	answer := struct{ Message string }{"The API answered " + response.Status}
	if response.StatusCode == http.StatusOK {
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			http.Error(w, "The API's answer is not JSON.", http.StatusBadGateway)
			return
		}
	}
	show(w, user, answer.Message)
}

func (app *application) logOut(w http.ResponseWriter, r *http.Request) {
	app.forget(r)
	query := url.Values{"client_id": {app.oauth2.ClientID}, "returnTo": {app.home}}
	http.Redirect(w, r, "https://"+os.Getenv("AUTH0_DOMAIN")+"/v2/logout?"+query.Encode(), http.StatusFound)
}

func (app *application) loginOf(r *http.Request) login {
	cookie, err := r.Cookie("login")
	if err != nil {
		return login{}
	}
	app.mutex.Lock()
	defer app.mutex.Unlock()
	return app.logins[cookie.Value]
}

// keep stores a login under a new cookie, so that one that somebody knew before the login is worth nothing after it.
func (app *application) keep(w http.ResponseWriter, kept login) {
	id := rand.Text()
	app.mutex.Lock()
	defer app.mutex.Unlock()
	app.logins[id] = kept
	http.SetCookie(w, &http.Cookie{Name: "login", Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

func (app *application) forget(r *http.Request) {
	if cookie, err := r.Cookie("login"); err == nil {
		app.mutex.Lock()
		defer app.mutex.Unlock()
		delete(app.logins, cookie.Value)
	}
}

func show(w http.ResponseWriter, user login, message string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := page.Execute(w, map[string]string{"Email": user.Email, "Message": message}); err != nil {
		log.Print(err)
	}
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Go example</title>
<link rel="stylesheet" href="/static/style.css">
<main><h1>Go example</h1>
{{if .Email}}<p>You are logged in as {{.Email}}.</p>
<a class="button" href="/messages">Call the API</a>
<a class="button" href="/logout">Log out</a>
<p role="status">{{.Message}}</p>
{{else}}<a class="button" href="/login">Log in</a>{{end}}
</main>
</html>
`))
