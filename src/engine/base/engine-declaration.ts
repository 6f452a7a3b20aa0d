// The limits and log events of the engine.
import { limitsOf } from '../../http/limits.ts';
import { eventTypesOf } from '../../records/base/log-events.ts';

export const engineLimits = limitsOf({
  authorize: { capacity: 600, perMinute: 600, per: 'address', where: '`/authorize`' },
  token: { capacity: 600, perMinute: 1800, per: 'address', where: '`/oauth/token`' },
  par: { capacity: 600, perMinute: 6000, per: 'address', where: '`/oauth/par`' },
  revoke: { capacity: 100, perMinute: 600, per: 'address', where: '`/oauth/revoke`' },
  introspect: { capacity: 1000, perMinute: 6000, per: 'address', where: '`/oauth/introspect`' },
  // As the specification of the API says: minus one per request, plus one per minute.
  userinfo: { capacity: 10, perMinute: 1, per: 'user', where: '`/userinfo`', ofRoute: true },
  clientDocuments: {
    capacity: 30,
    perMinute: 10,
    per: 'address',
    where: 'requests for which a document, keys or a request object of an application are fetched',
    everybody: { capacity: 20, perMinute: 20 },
  },
  clientDocumentHosts: {
    capacity: 20,
    perMinute: 5,
    per: 'domain, or known document',
    where: 'documents, keys and request objects of applications that are fetched',
  },
  // Such an application is kept for long, and takes the place of others.
  newApplications: {
    capacity: 20,
    perMinute: 1 / 60,
    per: 'user',
    where: 'applications of strangers that a user allows something as the first one',
  },
  discovery: { capacity: 200, perMinute: 1200, per: 'address', where: '`/.well-known/*`, `/client/*`' },
});

export const engineEvents = eventTypesOf({
  s: 'A login succeeded.',
  sdel: 'A session began in which somebody else acts for the user (session transfer).',
  w: 'A session transfer token was not accepted; the description says why.',
  sertft: 'A session transfer token was given for a refresh token.',
  f: { meaning: 'A login was refused; the description says why.', bounds: 'rejections' },
  mfar: 'A login needs a second factor.',
  gd_auth_rejected: 'A login was rejected at a device.',
  slo: 'A user logged out.',
  flo: { meaning: 'A logout was refused; the description says why.', bounds: 'rejections' },
  feacft: 'An authorization code could not be exchanged for tokens.',
  fertft: 'A refresh token could not be exchanged for tokens.',
  ferrt: 'A refresh token was used a second time; its family was revoked.',
  custom_claim_left_out: 'A declared claim was left out because of its size; the description says which.',
  scimd: 'An application was seen for the first time, which a document at its client_id describes.',
  fcimd: {
    meaning: 'The document of an application could not be used; the description says why.',
    bounds: 'rejections',
  },
  feccft: "An application's own credentials could not be exchanged for tokens.",
  success_on_behalf_of_token_exchange:
    'An API got a token of another API, to act for a user; `details.act` has the chain of actors.',
  failed_on_behalf_of_token_exchange:
    'An API got no token of another API to act for a user; the description says why.',
});
