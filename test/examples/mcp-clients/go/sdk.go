// The official SDK for Go.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

func main() {
	log.SetFlags(0)
	port := os.Getenv("CALLBACK_PORT")
	redirect := fmt.Sprintf("http://localhost:%s/callback", port)
	listener, err := net.Listen("tcp", "localhost:"+port)
	if err != nil {
		log.Fatal(err)
	}
	answers := make(chan *auth.AuthorizationResult)
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		fmt.Fprint(w, "You can close this page.")
		if query.Has("code") {
			answers <- &auth.AuthorizationResult{Code: query.Get("code"), State: query.Get("state"), Iss: query.Get("iss")}
		}
	}))

	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:         redirect,
		RequestRefreshToken: true,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			fmt.Println("Open", args.URL)
			return <-answers, nil
		},
	}
	if document := os.Getenv("CLIENT_METADATA_URL"); document != "" {
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: document}
	} else {
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName:              "SDK for Go",
				RedirectURIs:            []string{redirect},
				GrantTypes:              []string{"authorization_code", "refresh_token"},
				TokenEndpointAuthMethod: "none",
			},
		}
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk-go", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: os.Getenv("MCP_URL"), OAuthHandler: handler}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for _, call := range []*mcp.CallToolParams{
		{Name: "list_notes", Arguments: map[string]any{}},
		{Name: "add_note", Arguments: map[string]any{"text": "A note"}},
	} {
		result, err := session.CallTool(ctx, call)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", call.Name, result.Content[0].(*mcp.TextContent).Text)
	}
}
