// Sample pages for previews, with models of a user who logs in to an application.

import { databaseOptionsSchema } from '../../../records/connections.ts';
import { checkStrength } from '../../../users/password-policy.ts';
import { nameField } from '../../connections/name-field.ts';

/** A sample page. */
interface Sample {
  /** Path of the template below views/pages. */
  template: string;
  model: object;
}

const client = { name: 'Harbour Books' };
const email = 'ada.lovelace@example.com';
const form = { client, action: '#', csrf: '' };

/** A picture that stands for a QR code. */
const QR =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" shape-rendering="crispEdges"><path d="M1 1h3v3H1zM5 1h3v3H5zM1 5h3v3H1zM6 6h1v1H6z"/></svg>';

const rules = checkStrength(databaseOptionsSchema.parse({}), '').rules.map(
  ({ verified: _verified, ...rule }) => rule,
);

/** The samples by name, in the order in which users see the pages. */
export const SAMPLES: Readonly<Record<string, Sample>> = {
  login: {
    template: 'login/login',
    model: {
      ...form,
      names: nameField(['email']),
      values: { username: '' },
      signupUrl: '#',
      forgotPasswordUrl: '#',
      connections: [
        { text: 'login.with', name: 'Google', url: '#', mark: 'marks/google.svg' },
        { text: 'login.emailCode', url: '#', icon: 'email' },
      ],
    },
  },
  identifier: {
    template: 'login/identifier',
    model: { ...form, names: nameField(['email']), identifier: '', signupUrl: '#' },
  },
  password: {
    template: 'login/password',
    model: {
      ...form,
      names: nameField(['email']),
      values: { username: email },
      identifierUrl: '#',
      forgotPasswordUrl: '#',
      alert: 'login.wrong',
    },
  },
  signup: {
    template: 'login/signup',
    model: {
      ...form,
      email: {},
      values: { email: '', phone: '', username: '' },
      rules,
      faults: {},
      loginUrl: '#',
    },
  },
  code: {
    template: 'passwordless/code',
    model: {
      ...form,
      channel: 'email',
      address: email,
      digits: 6,
      minutes: 3,
      resendUrl: '#',
      resendSeconds: 0,
    },
  },
  mfa: { template: 'mfa/code', model: { ...form, channel: 'otp', remember: true, othersUrl: '#' } },
  enroll: {
    template: 'mfa/enroll-otp',
    model: { ...form, qr: QR, secret: 'HJ6XM2DNHJ6XM2DNHJ6XM2DNHJ6XM2DN', othersUrl: '#' },
  },
  consent: {
    template: 'login/consent',
    model: {
      ...form,
      user: email,
      scopes: [{ key: 'scope.openid' }, { key: 'scope.profile' }, { key: 'scope.email' }],
    },
  },
  forgot: {
    template: 'account/forgot',
    model: { ...form, names: nameField(['email']), email: '', loginUrl: '#' },
  },
  reset: { template: 'account/reset', model: { ...form, email, ticket: '', rules, faults: {} } },
  logout: { template: 'logout/signed-out', model: {} },
  error: {
    template: 'error',
    model: {
      kind: 'expired',
      error: 'invalid_request',
      description: 'This login has expired.',
      requestId: 'req-1',
    },
  },
};
