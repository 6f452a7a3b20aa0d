// The SDK, with its sessions in encrypted cookies. Its methods take the request and the reply, whose cookies these are.
import { CookieTransactionStore, ServerClient, StatelessStateStore } from '@auth0/auth0-server-js';

const { PORT, AUTH0_DOMAIN, AUTH0_CLIENT_ID, AUTH0_CLIENT_SECRET, AUTH0_AUDIENCE, SESSION_SECRET } =
  process.env;

export const origin = `http://localhost:${PORT}`;

const cookies = {
  setCookie: (name, value, options, { reply }) => reply.setCookie(name, value, options),
  getCookie: (name, { request }) => request.cookies[name],
  getCookies: ({ request }) => request.cookies,
  deleteCookie: (name, { reply }) => reply.clearCookie(name, { path: '/' }),
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
