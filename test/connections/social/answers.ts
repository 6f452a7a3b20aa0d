// Responses about a user as in each provider's reference, and the user that they become here.
import type { SocialStrategyName } from '../../../src/records/connections/social.ts';

export interface Known {
  /** Path, relative to the profile endpoint, to response. */
  answers: Record<string, object>;
  /** The user's id, without the strategy. */
  id: string;
  profile: object;
  /** The scopes that are requested if the connection has none. */
  scope: string;
}

const claims = {
  sub: 'subject-1',
  name: 'Grace Hopper',
  given_name: 'Grace',
  family_name: 'Hopper',
  picture: 'https://img.example.test/g.png',
  email: 'grace@example.test',
  email_verified: true,
};
const verified = { email: 'grace@example.test', email_verified: true };
const unverified = { email: 'grace@example.test', email_verified: false };
const openid = (id: string, scope: string, more = {}): Known => ({
  answers: { '': { ...claims, ...more } },
  id,
  profile: { ...verified, name: 'Grace Hopper', given_name: 'Grace', picture: claims.picture },
  scope,
});
const paypal: Known = {
  answers: {
    '': {
      user_id:
        'https://www.paypal.com/webapps/auth/identity/user/mWq6_1sU85v5EG9yHdPxJRrhGHrnMJ-1PQKtX6pcsmA',
      sub: 'https://www.paypal.com/webapps/auth/identity/user/mWq6_1sU85v5EG9yHdPxJRrhGHrnMJ-1PQKtX6pcsmA',
      name: 'Grace Hopper',
      payer_id: 'WDJJHEBZ4X2LY',
      verified_account: 'true',
      emails: [
        { value: 'other@example.test', primary: false, confirmed: true },
        { value: 'grace@example.test', primary: true, confirmed: true },
      ],
    },
  },
  id: 'mWq6_1sU85v5EG9yHdPxJRrhGHrnMJ-1PQKtX6pcsmA',
  profile: { ...verified, name: 'Grace Hopper' },
  scope: 'openid profile email',
};
const salesforce = {
  sub: 'https://login.salesforce.com/id/00Dx0000001T0zkEAC/005x0000001S2b9AAC',
  user_id: '005x0000001S2b9AAC',
  organization_id: '00Dx0000001T0zkEAC',
};

export const KNOWN: Readonly<Record<SocialStrategyName, Known>> = {
  amazon: {
    answers: {
      '': {
        user_id: 'amzn1.account.K2LI23KL2LK2',
        name: 'Grace Hopper',
        email: 'grace@example.test',
        postal_code: '98052',
      },
    },
    id: 'amzn1.account.K2LI23KL2LK2',
    profile: { ...unverified, name: 'Grace Hopper' },
    scope: 'profile',
  },
  bitbucket: {
    answers: {
      '': {
        type: 'user',
        uuid: '{677fa626-8a5b-4e25-9ee4-d6dd7f3c6d17}',
        display_name: 'Grace Hopper',
        nickname: 'grace',
        links: { avatar: { href: 'https://img.example.test/g.png' } },
      },
      '/emails': {
        values: [
          { email: 'other@example.test', is_primary: false, is_confirmed: true },
          { email: 'grace@example.test', is_primary: true, is_confirmed: true },
        ],
      },
    },
    id: '{677fa626-8a5b-4e25-9ee4-d6dd7f3c6d17}',
    profile: {
      ...verified,
      name: 'Grace Hopper',
      nickname: 'grace',
      picture: 'https://img.example.test/g.png',
    },
    scope: 'account email',
  },
  box: {
    answers: { '': { type: 'user', id: '11446498', name: 'Grace Hopper', login: 'grace@example.test' } },
    id: '11446498',
    profile: { ...unverified, name: 'Grace Hopper' },
    scope: '',
  },
  digitalocean: {
    answers: {
      '': {
        account: {
          uuid: 'b6fr89dbf6d9156cace5f3c78dc9851d957381ef',
          name: 'Grace Hopper',
          email: 'grace@example.test',
          email_verified: true,
        },
      },
    },
    id: 'b6fr89dbf6d9156cace5f3c78dc9851d957381ef',
    profile: { ...verified, name: 'Grace Hopper' },
    scope: 'read',
  },
  discord: {
    answers: {
      '': {
        id: '80351110224678912',
        username: 'grace',
        global_name: 'Grace Hopper',
        avatar: '8342729096ea3675442027381ff50dfe',
        email: 'grace@example.test',
        verified: true,
        locale: 'en-US',
      },
    },
    id: '80351110224678912',
    profile: {
      ...verified,
      name: 'Grace Hopper',
      nickname: 'grace',
      picture: 'https://cdn.discordapp.com/avatars/80351110224678912/8342729096ea3675442027381ff50dfe.png',
    },
    scope: 'identify email',
  },
  dropbox: {
    answers: {
      '': {
        account_id: 'dbid:AAH4f99T0taONIb-OurWxbNQ6ywGRopQngc',
        name: { given_name: 'Grace', surname: 'Hopper', display_name: 'Grace Hopper' },
        email: 'grace@example.test',
        email_verified: true,
        locale: 'en',
      },
    },
    id: 'dbid:AAH4f99T0taONIb-OurWxbNQ6ywGRopQngc',
    profile: { ...verified, name: 'Grace Hopper', given_name: 'Grace', family_name: 'Hopper' },
    scope: 'account_info.read',
  },
  facebook: {
    answers: {
      '': {
        id: '10158273646412345',
        name: 'Grace Hopper',
        first_name: 'Grace',
        last_name: 'Hopper',
        email: 'grace@example.test',
        picture: { data: { url: 'https://img.example.test/g.png', is_silhouette: false } },
      },
    },
    id: '10158273646412345',
    profile: {
      ...unverified,
      name: 'Grace Hopper',
      given_name: 'Grace',
      picture: 'https://img.example.test/g.png',
    },
    scope: 'public_profile email',
  },
  figma: {
    answers: {
      '': {
        id: '2600000000000',
        email: 'grace@example.test',
        handle: 'Grace Hopper',
        img_url: 'https://img.example.test/g.png',
      },
    },
    id: '2600000000000',
    profile: { ...unverified, name: 'Grace Hopper' },
    scope: 'current_user:read',
  },
  fitbit: {
    answers: { '': { name: 'users/me/identity', legacyUserId: '257V3V', healthUserId: 'NGL8Q2' } },
    id: '257V3V',
    profile: {},
    scope: 'https://www.googleapis.com/auth/googlehealth.profile.readonly',
  },
  github: {
    answers: {
      '': {
        login: 'grace',
        id: 583231,
        node_id: 'MDQ6VXNlcjU4MzIzMQ==',
        avatar_url: 'https://img.example.test/g.png',
        html_url: 'https://github.com/grace',
        name: 'Grace Hopper',
        blog: '',
        email: null,
      },
      '/emails': [
        { email: 'other@example.test', primary: false, verified: true, visibility: null },
        { email: 'grace@example.test', primary: true, verified: true, visibility: 'private' },
      ],
    },
    id: '583231',
    profile: {
      ...verified,
      name: 'Grace Hopper',
      nickname: 'grace',
      picture: 'https://img.example.test/g.png',
    },
    scope: 'user:email',
  },
  gitlab: openid('subject-1', 'openid profile email', { groups: ['a'] }),
  line: {
    answers: { '': { sub: 'U4af4980629', name: 'Grace Hopper', picture: 'https://img.example.test/g.png' } },
    id: 'U4af4980629',
    profile: { name: 'Grace Hopper', picture: 'https://img.example.test/g.png' },
    scope: 'openid profile',
  },
  linkedin: openid('subject-1', 'openid profile email', { locale: { country: 'US', language: 'en' } }),
  paypal,
  'paypal-sandbox': paypal,
  salesforce: openid('005x0000001S2b9AAC', 'openid profile email', salesforce),
  'salesforce-sandbox': openid('00Dx0000001T0zkEAC-005x0000001S2b9AAC', 'openid profile email', salesforce),
  slack: openid('T0R7GR-U0R7JM', 'openid profile email', {
    ok: true,
    sub: 'U0R7JM',
    'https://slack.com/user_id': 'U0R7JM',
    'https://slack.com/team_id': 'T0R7GR',
  }),
  spotify: {
    answers: {
      '': {
        id: 'grace',
        display_name: 'Grace Hopper',
        email: 'grace@example.test',
        images: [{ url: 'https://img.example.test/g.png', height: null, width: null }],
      },
    },
    id: 'grace',
    profile: { ...unverified, name: 'Grace Hopper', picture: 'https://img.example.test/g.png' },
    scope: 'user-read-email',
  },
  twitch: {
    answers: {
      '': {
        data: [
          {
            id: '141981764',
            login: 'grace',
            display_name: 'Grace Hopper',
            email: 'grace@example.test',
            profile_image_url: 'https://img.example.test/g.png',
          },
        ],
      },
    },
    id: '141981764',
    profile: { ...verified, name: 'Grace Hopper', nickname: 'grace' },
    scope: 'user:read:email',
  },
  twitter: {
    answers: {
      '': {
        data: {
          id: '1846987139428634624',
          name: 'Grace Hopper',
          username: 'grace',
          profile_image_url: 'https://img.example.test/g.png',
          confirmed_email: 'grace@example.test',
        },
      },
    },
    id: '1846987139428634624',
    profile: { ...verified, name: 'Grace Hopper', nickname: 'grace' },
    scope: 'users.read tweet.read',
  },
  windowslive: {
    answers: {
      '': {
        '@odata.context': 'https://graph.microsoft.com/v1.0/$metadata#users/$entity',
        id: '48d31887-5fad-4d73-a9f5-3c356e68a038',
        displayName: 'Grace Hopper',
        givenName: 'Grace',
        surname: 'Hopper',
        mail: 'grace@example.test',
        userPrincipalName: 'grace@example.test',
      },
    },
    id: '48d31887-5fad-4d73-a9f5-3c356e68a038',
    profile: { ...unverified, name: 'Grace Hopper', given_name: 'Grace', family_name: 'Hopper' },
    scope: 'User.Read',
  },
  wordpress: {
    answers: {
      '': {
        ID: 78972699,
        display_name: 'Grace Hopper',
        username: 'grace',
        email: 'grace@example.test',
        email_verified: true,
        avatar_URL: 'https://img.example.test/g.png',
      },
    },
    id: '78972699',
    profile: { ...verified, name: 'Grace Hopper', nickname: 'grace' },
    scope: 'auth',
  },
  yahoo: openid('subject-1', 'openid profile email'),
};
