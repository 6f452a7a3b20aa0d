// Quickstart programs for frameworks on a server. They read secrets from the environment.
import {
  audienceLine,
  doubleQuoted,
  js,
  originOf,
  pathOf,
  portOf,
  type QuickstartValues,
  quoted,
  type Snippet,
} from './snippet.ts';

/** The SDK has its own addresses for login, callback and logout. */
export const nuxt = (values: QuickstartValues): Snippet => ({
  ...js('@auth0/auth0-nuxt', ''),
  language: 'ts',
  code: `// nuxt.config.ts
export default defineNuxtConfig({
  modules: [['@auth0/auth0-nuxt', { routes: { callback: ${quoted(pathOf(values))} } }]],
  runtimeConfig: {
    auth0: {
      domain: ${quoted(values.domain)},
      clientId: ${quoted(values.clientId)},
      clientSecret: process.env.CLIENT_SECRET,
      // 64 random bytes in hexadecimal, which its session cookies are encrypted with.
      sessionSecret: process.env.SESSION_SECRET,
      appBaseUrl: ${quoted(originOf(values))},${audienceLine(values, '      ')}
    },
  },
});

// Users log in at /auth/login, and out at /auth/logout. In a page: useUser()
`,
});

/** Auth.js, whose callback ends with the id of the provider. */
export const svelteKit = (values: QuickstartValues): Snippet => ({
  ...js('@auth/sveltekit', ''),
  language: 'ts',
  code: `// hooks.server.ts, in src
import { SvelteKitAuth } from '@auth/sveltekit';
import { env } from '$env/dynamic/private';

// The callback of the application is /auth/callback/gatehouse.
export const { handle, signIn, signOut } = SvelteKitAuth({
  providers: [
    {
      id: 'gatehouse',
      name: 'Gatehouse',
      type: 'oidc',
      issuer: ${quoted(values.issuer)},
      clientId: ${quoted(values.clientId)},
      clientSecret: env.CLIENT_SECRET,
      checks: ['pkce', 'state', 'nonce'],
    },
  ],
  // 32 random bytes, which its session cookies are encrypted with.
  secret: env.AUTH_SECRET,
  trustHost: true,
});

// Users log in at /auth/signin, and out at /auth/signout. In a +page.server.ts: (await locals.auth())?.user
`,
});

export const express = (values: QuickstartValues): Snippet =>
  js(
    'express-openid-connect',
    `import express from 'express';
import openIdConnect from 'express-openid-connect';

const app = express();
app.use(
  openIdConnect.auth({
    issuerBaseURL: ${quoted(values.issuer)},
    baseURL: ${quoted(originOf(values))},
    clientID: ${quoted(values.clientId)},
    clientSecret: process.env.CLIENT_SECRET,
    // 32 random bytes, which its session cookies are encrypted with.
    secret: process.env.SESSION_SECRET,
    authRequired: false,
    idpLogout: true,
    routes: { callback: ${quoted(pathOf(values))} },
    authorizationParams: {
      response_type: 'code',
      scope: 'openid profile email',${audienceLine(values, '      ')}
    },
  }),
);

// Users log in at /login, and out at /logout.
app.get('/', (request, response) => response.json(request.oidc.user ?? null));
app.listen(${portOf(values.callback)});
`,
    ['express'],
  );

/** Without a session of its own: the program keeps the user in one. */
export const fastify = (values: QuickstartValues): Snippet =>
  js(
    '@fastify/oauth2',
    `import oauth2 from '@fastify/oauth2';
import Fastify from 'fastify';

const app = Fastify();
app.register(oauth2, {
  name: 'gatehouse',
  scope: ['openid', 'profile', 'email'],
  credentials: { client: { id: ${quoted(values.clientId)}, secret: process.env.CLIENT_SECRET } },
  discovery: { issuer: ${quoted(values.issuer)} },
  pkce: 'S256',
  startRedirectPath: '/login',
  callbackUri: ${quoted(values.callback)},
});

app.get(${quoted(pathOf(values))}, async (request) => {
  const { token } = await app.gatehouse.getAccessTokenFromAuthorizationCodeFlow(request);
  // Keep the user in a session, such as that of @fastify/secure-session.
  return app.gatehouse.userinfo(token);
});
await app.listen({ port: ${portOf(values.callback)} });
`,
    ['fastify'],
  );

export const hono = (values: QuickstartValues): Snippet =>
  js(
    '@hono/oidc-auth',
    `import {
  getAuth,
  initOidcAuthMiddleware,
  oidcAuthMiddleware,
  processOAuthCallback,
  revokeSession,
} from '@hono/oidc-auth';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

const app = new Hono();
app.use(
  initOidcAuthMiddleware({
    OIDC_ISSUER: ${quoted(values.issuer)},
    OIDC_CLIENT_ID: ${quoted(values.clientId)},
    OIDC_CLIENT_SECRET: process.env.CLIENT_SECRET,
    OIDC_REDIRECT_URI: ${quoted(values.callback)},
    OIDC_SCOPES: 'openid profile email',
    // At least 32 characters, which its session cookies are signed with.
    OIDC_AUTH_SECRET: process.env.SESSION_SECRET,
  }),
);
app.get(${quoted(pathOf(values))}, (context) => processOAuthCallback(context));
app.get('/logout', async (context) => {
  await revokeSession(context);
  return context.text('You are logged out.');
});

// Everything from here on asks users to log in.
app.use(oidcAuthMiddleware());
app.get('/', async (context) => context.json(await getAuth(context)));
serve({ fetch: app.fetch, port: ${portOf(values.callback)} });
`,
    ['hono', '@hono/node-server'],
  );

/** The client of Authlib, which has the same form in each framework. */
const authlibRegistration = (values: QuickstartValues): string => `oauth.register(
    'gatehouse',
    server_metadata_url=${quoted(`${values.issuer}.well-known/openid-configuration`)},
    client_id=${quoted(values.clientId)},
    client_secret=os.environ['CLIENT_SECRET'],
    client_kwargs={'scope': 'openid profile email', 'code_challenge_method': 'S256'},
)`;

export const fastapi = (values: QuickstartValues): Snippet => ({
  title: 'FastAPI with Authlib',
  package: undefined,
  install: 'pip install authlib fastapi httpx itsdangerous uvicorn',
  language: 'python',
  code: `# app.py
import os

from authlib.integrations.starlette_client import OAuth
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from starlette.middleware.sessions import SessionMiddleware

app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key=os.environ['SESSION_SECRET'])
oauth = OAuth()
${authlibRegistration(values)}


@app.get('/login')
async def login(request: Request):
    return await oauth.gatehouse.authorize_redirect(request, ${quoted(values.callback)})


@app.get(${quoted(pathOf(values))})
async def callback(request: Request):
    token = await oauth.gatehouse.authorize_access_token(request)
    request.session['user'] = {name: token['userinfo'].get(name) for name in ('sub', 'email')}
    return RedirectResponse('/')


@app.get('/')
async def home(request: Request):
    return request.session.get('user')

# uvicorn app:app --port ${portOf(values.callback)}
`,
});

export const flask = (values: QuickstartValues): Snippet => ({
  title: 'Flask with Authlib',
  package: undefined,
  install: 'pip install authlib flask requests',
  language: 'python',
  code: `# app.py
import os

from authlib.integrations.flask_client import OAuth
from flask import Flask, redirect, session

app = Flask(__name__)
app.secret_key = os.environ['SESSION_SECRET']
oauth = OAuth(app)
${authlibRegistration(values)}


@app.get('/login')
def login():
    return oauth.gatehouse.authorize_redirect(${quoted(values.callback)})


@app.get(${quoted(pathOf(values))})
def callback():
    token = oauth.gatehouse.authorize_access_token()
    session['user'] = {name: token['userinfo'].get(name) for name in ('sub', 'email')}
    return redirect('/')


@app.get('/')
def home():
    return session.get('user') or {}

# flask run --port ${portOf(values.callback)}
`,
});

export const go = (values: QuickstartValues): Snippet => ({
  title: 'Go with go-oidc',
  package: undefined,
  install: 'go get github.com/coreos/go-oidc/v3/oidc golang.org/x/oauth2',
  language: 'go',
  code: `// main.go
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log"
	"net/http"
	"os"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

func main() {
	provider, err := oidc.NewProvider(context.Background(), ${doubleQuoted(values.issuer)})
	if err != nil {
		log.Fatal(err)
	}
	config := oauth2.Config{
		ClientID:     ${doubleQuoted(values.clientId)},
		ClientSecret: os.Getenv("CLIENT_SECRET"),
		Endpoint:     provider.Endpoint(),
		RedirectURL:  ${doubleQuoted(values.callback)},
		Scopes:       []string{oidc.ScopeOpenID, "profile", "email"},
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: config.ClientID})

	http.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		state, pkce := rand.Text(), oauth2.GenerateVerifier()
		cookie := http.Cookie{Name: "login", Value: state + "." + pkce, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
		http.SetCookie(w, &cookie)
		http.Redirect(w, r, config.AuthCodeURL(state, oauth2.S256ChallengeOption(pkce)), http.StatusFound)
	})
	http.HandleFunc(${doubleQuoted(pathOf(values))}, func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("login")
		state := r.FormValue("state")
		if err != nil || len(cookie.Value) <= len(state) || cookie.Value[:len(state)+1] != state+"." {
			http.Error(w, "this login was not begun here", http.StatusBadRequest)
			return
		}
		pkce := oauth2.VerifierOption(cookie.Value[len(state)+1:])
		token, err := config.Exchange(r.Context(), r.FormValue("code"), pkce)
		if err != nil {
			http.Error(w, "the login failed", http.StatusBadGateway)
			return
		}
		raw, _ := token.Extra("id_token").(string)
		user, err := verifier.Verify(r.Context(), raw)
		if err != nil {
			http.Error(w, "the login failed", http.StatusBadGateway)
			return
		}
		// Keep the user in a session.
		var claims map[string]any
		user.Claims(&claims)
		json.NewEncoder(w).Encode(claims)
	})
	log.Fatal(http.ListenAndServe(${doubleQuoted(`localhost:${portOf(values.callback)}`)}, nil))
}
`,
});

/** The callback of Spring Security ends with the id of the registration. */
export const spring = (values: QuickstartValues): Snippet => ({
  title: 'Spring Boot with Spring Security',
  package: undefined,
  install: undefined,
  language: 'java',
  code: `// src/main/java/app/Application.java, with the dependencies spring-boot-starter-web and
// spring-boot-starter-oauth2-client. The callback of the application is /login/oauth2/code/gatehouse.
package app;

import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.core.oidc.user.OidcUser;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@SpringBootApplication
@RestController
public class Application {
  public static void main(String[] arguments) {
    SpringApplication application = new SpringApplication(Application.class);
    String registration = "spring.security.oauth2.client.registration.gatehouse.";
    application.setDefaultProperties(Map.of(
        "server.port", ${doubleQuoted(String(portOf(values.callback)))},
        "spring.security.oauth2.client.provider.gatehouse.issuer-uri", ${doubleQuoted(values.issuer)},
        registration + "client-id", ${doubleQuoted(values.clientId)},
        registration + "client-secret", System.getenv("CLIENT_SECRET"),
        registration + "scope", "openid,profile,email"));
    application.run(arguments);
  }

  @GetMapping("/")
  Map<String, Object> home(@AuthenticationPrincipal OidcUser user) {
    return user.getClaims();
  }
}
`,
});
