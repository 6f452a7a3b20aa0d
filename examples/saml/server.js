import { SAML, ValidateInResponseTo } from '@node-saml/node-saml';
import cookieSession from 'cookie-session';
import express from 'express';

const { PORT, AUTH0_DOMAIN, AUTH0_CLIENT_ID, SESSION_SECRET } = process.env;

const origin = `http://localhost:${PORT}`;
const gatehouse = `https://${AUTH0_DOMAIN}/samlp`;

/** The certificate with which Gatehouse signs, from its metadata. */
async function signingCertificate() {
  const metadata = await (await fetch(`${gatehouse}/metadata/${AUTH0_CLIENT_ID}`)).text();
  return /<(?:\w+:)?X509Certificate>([^<]+)</.exec(metadata)[1];
}

const saml = new SAML({
  issuer: `${origin}/saml/metadata`,
  callbackUrl: `${origin}/saml/login`,
  logoutCallbackUrl: `${origin}/saml/logout`,
  entryPoint: `${gatehouse}/${AUTH0_CLIENT_ID}`,
  logoutUrl: `${gatehouse}/${AUTH0_CLIENT_ID}/logout`,
  idpCert: await signingCertificate(),
  audience: `${origin}/saml/metadata`,
  // Gatehouse signs the assertion; that is enough.
  wantAuthnResponseSigned: false,
  // Only responses to requests of this application, each once.
  validateInResponseTo: ValidateInResponseTo.always,
});

const app = express();
app.use(express.static('public'));
app.use(express.urlencoded({ extended: false }));
app.use(cookieSession({ name: 'session', secret: SESSION_SECRET, sameSite: 'lax' }));

app.get('/', (request, response) => {
  const { user } = request.session;
  response.send(page(user === undefined ? loggedOut : loggedIn(user)));
});

app.get('/login', async (_request, response) => {
  response.redirect(await saml.getAuthorizeUrlAsync('', undefined, {}));
});

app.post('/saml/login', async (request, response) => {
  const { profile } = await saml.validatePostResponseAsync(request.body);
  const { nameID, nameIDFormat, sessionIndex } = profile;
  request.session.user = { nameID, nameIDFormat, sessionIndex };
  response.redirect('/');
});

app.get('/logout', async (request, response) => {
  const { user } = request.session;
  request.session = null;
  response.redirect(user === undefined ? '/' : await saml.getLogoutUrlAsync(user, '', {}));
});

// Gatehouse answers here once its own session has ended. If another application ends that session, it asks here.
app.get('/saml/logout', async (request, response) => {
  const [, query] = request.originalUrl.split('?');
  const { profile } = await saml.validateRedirectAsync(request.query, query);
  request.session = null;
  response.redirect(profile === null ? '/' : await saml.getLogoutResponseUrlAsync(profile, '', {}, true));
});

const loggedOut = '<a class="button" href="/login">Log in</a>';

const loggedIn = (user) => `<p>You are logged in as ${escaped(user.nameID)}.</p>
<a class="button" href="/logout">Log out</a>`;

const page = (content) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>SAML example</title>
<link rel="stylesheet" href="/style.css">
<main><h1>SAML example</h1>${content}</main>
</html>`;

const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

app.listen(PORT, 'localhost');
