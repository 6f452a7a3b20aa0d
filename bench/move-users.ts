// The users of a made-up tenant of the hosted service, in the forms in which a team gets them: an export of users, the file of
// password hashes, and memberships. Of ten users seven are of a database, one of these with a linked social identity; two are
// social users and one is known by a phone number. Two in ten are members of an organization, one in ten has a role.

import { once } from 'node:events';
import { createWriteStream } from 'node:fs';

/** A hash of bcrypt in form: no password is known for it. */
const HASH = `$2b$10$${'abcdefghijklmnopqrstuv'}${'ABCDEFGHIJKLMNOPQRSTUVWXYZ01234'}`;

export const ORGANIZATIONS = 40;

const hex = (n: number) => (n + 0x5f7c8ec7).toString(16).padStart(24, '0');

export const TENANT = `
databases:
  - name: Username-Password-Authentication
connections:
  - name: google-oauth2
    strategy: google-oauth2
    options: { client_id: x, client_secret: y }
  - name: sms
    strategy: sms
roles:
  - name: Editor
  - name: Reader
organizations:
${Array.from({ length: ORGANIZATIONS }, (_, n) => `  - { name: org-${n}, display_name: Org ${n} }`).join('\n')}
`;

export function userAt(n: number): Record<string, unknown> {
  const name = `user${n}`;
  const common = {
    created_at: '2021-11-01T09:00:00.000Z',
    updated_at: '2026-11-20T09:00:00.000Z',
    last_login: '2026-11-20T09:00:00.000Z',
    last_ip: '203.0.113.7',
    logins_count: n % 50,
    name: `Ada ${name}`,
    nickname: name,
    picture: `https://images.example.com/avatars/${name}.png`,
  };
  const kind = n % 10;
  if (kind === 9)
    return {
      ...common,
      user_id: `sms|${hex(n)}`,
      phone_number: `+4915${(100000000 + n).toString()}`,
      phone_verified: true,
      identities: [{ connection: 'sms', provider: 'sms', user_id: hex(n), isSocial: false }],
    };
  const person = {
    email: `${name}@example.com`,
    email_verified: n % 2 === 0,
    given_name: 'Ada',
    family_name: name,
  };
  if (kind >= 7)
    return {
      ...common,
      ...person,
      user_id: `google-oauth2|${100000000000 + n}`,
      locale: 'en',
      identities: [
        {
          connection: 'google-oauth2',
          provider: 'google-oauth2',
          user_id: `${100000000000 + n}`,
          isSocial: true,
        },
      ],
    };
  const own = {
    connection: 'Username-Password-Authentication',
    provider: 'auth0',
    user_id: hex(n),
    isSocial: false,
  };
  const google = {
    connection: 'google-oauth2',
    provider: 'google-oauth2',
    user_id: `${900000000000 + n}`,
    isSocial: true,
    profileData: { email: `${name}@gmail.example`, email_verified: true, name: `Ada ${name}` },
  };
  return {
    ...common,
    ...person,
    user_id: `auth0|${hex(n)}`,
    user_metadata: { theme: 'dark', newsletter: true, city: 'Zürich' },
    app_metadata: { plan: 'free', tier: n % 3 },
    identities: kind === 0 ? [own, google] : [own],
  };
}

export function secretAt(n: number): Record<string, unknown> | undefined {
  if (n % 10 >= 7) return undefined;
  return {
    _id: { $oid: hex(n) },
    email: `user${n}@example.com`,
    email_verified: n % 2 === 0,
    passwordHash: HASH,
    password_set_date: { $date: '2022-10-06T15:30:15.000Z' },
    tenant: 'somebody',
    connection: 'Username-Password-Authentication',
    _tmp_is_unique: true,
  };
}

export function accessAt(n: number): Record<string, unknown>[] {
  const { user_id } = userAt(n);
  return [
    ...(n % 10 < 2 ? [{ user_id, organization: `org-${n % ORGANIZATIONS}`, roles: ['Reader'] }] : []),
    ...(n % 10 === 2 ? [{ user_id, roles: ['Editor'] }] : []),
  ];
}

/** Writes a file of lines. */
export async function writeLines(
  file: string,
  count: number,
  linesAt: (n: number) => object[],
): Promise<void> {
  const out = createWriteStream(file);
  for (let n = 0; n < count; n += 1)
    for (const line of linesAt(n)) if (!out.write(`${JSON.stringify(line)}\n`)) await once(out, 'drain');
  out.end();
  await once(out, 'close');
}
