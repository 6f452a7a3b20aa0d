// Manages a tenant with go-auth0, and prints a line for each step that worked.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/auth0/go-auth0"
	"github.com/auth0/go-auth0/management"
)

const database = "Username-Password-Authentication"

var ctx = context.Background()

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func hold(holds bool, what string) {
	if !holds {
		must(fmt.Errorf("wrong: %s", what))
	}
}

func refused(what string, err error) {
	refusal, ok := err.(management.Error)
	if !ok {
		must(fmt.Errorf("%s was not refused: %v", what, err))
	}
	fmt.Printf("refused %s: %d %s\n", what, refusal.Status(), refusal.Error())
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, one := range info.Deps {
		if one.Path == "github.com/auth0/go-auth0" {
			return one.Version
		}
	}
	return "unknown"
}

func main() {
	api, err := management.New(
		os.Getenv("AUTH0_DOMAIN"),
		management.WithClientCredentials(ctx, os.Getenv("AUTH0_CLIENT_ID"), os.Getenv("AUTH0_CLIENT_SECRET")),
	)
	must(err)
	fmt.Println("version", version())

	client := &management.Client{Name: auth0.String("Go"), AppType: auth0.String("regular_web")}
	must(api.Client.Create(ctx, client))
	must(api.Client.Update(ctx, client.GetClientID(), &management.Client{Description: auth0.String("changed")}))
	read, err := api.Client.Read(ctx, client.GetClientID())
	must(err)
	hold(read.GetDescription() == "changed", "the description")
	names := map[string]bool{}
	for page := 0; ; page++ {
		list, err := api.Client.List(ctx, management.Page(page), management.PerPage(2))
		must(err)
		for _, one := range list.Clients {
			names[one.GetName()] = true
		}
		if !list.HasNext() {
			break
		}
	}
	hold(names["Go"], "the list of applications")
	fmt.Println("step applications")

	connection := &management.Connection{
		Name:     auth0.String("go-database"),
		Strategy: auth0.String("auth0"),
		Options:  &management.ConnectionOptions{PasswordPolicy: auth0.String("good")},
	}
	must(api.Connection.Create(ctx, connection))
	must(api.Connection.Update(ctx, connection.GetID(), &management.Connection{DisplayName: auth0.String("Changed")}))
	byName, err := api.Connection.ReadByName(ctx, "go-database")
	must(err)
	hold(byName.GetDisplayName() == "Changed", "the display name")
	checkpoint, err := api.Connection.List(ctx, management.Take(1))
	must(err)
	hold(len(checkpoint.Connections) == 1 && checkpoint.HasNext(), "the first page of connections")
	fmt.Println("step connections")

	user := &management.User{
		Connection: auth0.String(database),
		Email:      auth0.String("go@example.test"),
		Password:   auth0.String("A-long-Passw0rd!"),
	}
	must(api.User.Create(ctx, user))
	must(api.User.Update(ctx, user.GetID(), &management.User{Nickname: auth0.String("Gopher")}))
	found, err := api.User.Search(ctx, management.Query(`email:"go@example.test"`))
	must(err)
	hold(found.Total == 1 && found.Users[0].GetNickname() == "Gopher", "the search")
	fmt.Println("step users")

	organization := &management.Organization{Name: auth0.String("gophers")}
	must(api.Organization.Create(ctx, organization))
	must(api.Organization.Update(ctx, organization.GetID(), &management.Organization{DisplayName: auth0.String("Changed")}))
	must(api.Organization.AddMembers(ctx, organization.GetID(), []string{user.GetID()}))
	members, err := api.Organization.Members(ctx, organization.GetID())
	must(err)
	hold(len(members.Members) == 1, "the members")
	organizations, err := api.Organization.List(ctx)
	must(err)
	hold(len(organizations.Organizations) > 0, "the list of organizations")
	fmt.Println("step organizations")

	refused("a second connection of the name", api.Connection.Create(ctx, &management.Connection{
		Name: auth0.String("go-database"), Strategy: auth0.String("auth0"),
	}))

	must(api.Organization.Delete(ctx, organization.GetID()))
	must(api.User.Delete(ctx, user.GetID()))
	must(api.Connection.Delete(ctx, connection.GetID()))
	must(api.Client.Delete(ctx, client.GetClientID()))
	_, err = api.Client.Read(ctx, client.GetClientID())
	refused("a deleted application", err)
	fmt.Println("step deletions")
}
