// The SDK, with its sessions in encrypted cookies. Its methods take the event of a request, whose cookies these are.
import { CookieTransactionStore, ServerClient, StatelessStateStore } from '@auth0/auth0-server-js';
import {
  API_PORT,
  AUTH0_AUDIENCE,
  AUTH0_CLIENT_ID,
  AUTH0_CLIENT_SECRET,
  AUTH0_DOMAIN,
  PORT,
  SESSION_SECRET,
} from '$app/env/private';

export const origin = `http://localhost:${PORT}`;
export const api = `http://localhost:${API_PORT}`;
export const gatehouse = `https://${AUTH0_DOMAIN}`;

const cookies = {
  setCookie: (name, value, options, event) => event.cookies.set(name, value, { path: '/', ...options }),
  getCookie: (name, event) => event.cookies.get(name),
  getCookies: (event) => Object.fromEntries(event.cookies.getAll().map(({ name, value }) => [name, value])),
  deleteCookie: (name, event) => event.cookies.delete(name, { path: '/' }),
};

export const auth0 = new ServerClient({
  domain: AUTH0_DOMAIN,
  clientId: AUTH0_CLIENT_ID,
  clientSecret: AUTH0_CLIENT_SECRET,
  authorizationParams: {
    redirect_uri: `${origin}/callback`,
    audience: AUTH0_AUDIENCE,
    scope: 'openid profile email read:messages',
  },
  transactionStore: new CookieTransactionStore({ secret: SESSION_SECRET }, cookies),
  stateStore: new StatelessStateStore({ secret: SESSION_SECRET }, cookies),
});
