package notes

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const both = "read:notes write:notes"

// newAPI returns a function that calls a new API: it reads notes or, with a text, writes one.
func newAPI(t *testing.T) func(token, text string) (status int, body string) {
	t.Helper()
	api, err := NewAPI(server.url+"/", audience, server.client)
	if err != nil {
		t.Fatal(err)
	}
	return func(token, text string) (int, string) {
		request := httptest.NewRequest("GET", "/notes", nil)
		if text != "" {
			request = httptest.NewRequest("POST", "/notes", strings.NewReader(`{"text":"`+text+`"}`))
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		return answer.Code, strings.TrimSpace(answer.Body.String())
	}
}

func expect(t *testing.T, status, wanted int) {
	t.Helper()
	if status != wanted {
		t.Errorf("status %d, not %d", status, wanted)
	}
}

func TestKeepsTheNotesOfEachUser(t *testing.T) {
	call := newAPI(t)
	ada, grace := tokenOf(t, "ada@example.test", both), tokenOf(t, "grace@example.test", both)
	status, _ := call(ada, "Engine")
	expect(t, status, http.StatusCreated)
	status, _ = call(grace, "Compiler")
	expect(t, status, http.StatusCreated)
	if _, notes := call(ada, ""); notes != `["Engine"]` {
		t.Errorf("notes of Ada: %s", notes)
	}
	if _, notes := call(grace, ""); notes != `["Compiler"]` {
		t.Errorf("notes of Grace: %s", notes)
	}
}

func TestRequiresAToken(t *testing.T) {
	call := newAPI(t)
	for _, token := range []string{"", "no-token"} {
		status, _ := call(token, "")
		expect(t, status, http.StatusUnauthorized)
	}
}

func TestRequiresTheScopeOfTheRoute(t *testing.T) {
	call := newAPI(t)
	token := tokenOf(t, "ada@example.test", "read:notes")
	status, _ := call(token, "")
	expect(t, status, http.StatusOK)
	status, _ = call(token, "Engine")
	expect(t, status, http.StatusForbidden)
}
