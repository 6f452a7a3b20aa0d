// A database of users elsewhere, asked over HTTP, and scripts of a connection that ask it.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import bcrypt from 'bcryptjs';

interface LegacyUser {
  id: number | string;
  email: string;
  email_verified: boolean;
  name: string;
  hash: string;
}

export interface LegacyDatabase {
  url: string;
  users: Map<string, LegacyUser>;
  /** The paths that were asked for so far. */
  seen: string[];
  /** In place of its answers, until it is set to undefined. */
  misbehave: ((response: http.ServerResponse) => void) | undefined;
  /** Makes a user there. */
  add(email: string, password: string, more?: Partial<LegacyUser>): LegacyUser;
  stop(): Promise<unknown>;
}

/** Starts one, on a port of the system's choosing. It answers those alone who have its key. */
export async function startLegacyDatabase(): Promise<LegacyDatabase> {
  const users = new Map<string, LegacyUser>();
  const seen: string[] = [];
  const state = { misbehave: undefined as LegacyDatabase['misbehave'] };
  const server = http.createServer((request, response) => {
    request.resume().on('end', () => {
      const path = request.url ?? '';
      seen.push(path);
      const json = (status: number, value: unknown) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
      if (state.misbehave !== undefined) return state.misbehave(response);
      if (request.headers['x-api-key'] !== KEY) return json(401, {});
      const user = users.get(decodeURIComponent(path.split('/').at(-1) ?? ''));
      return user === undefined ? json(404, {}) : json(200, user);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  let count = 0;
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    users,
    seen,
    add: (email: string, password: string, more: Partial<LegacyUser> = {}) => {
      const hash = bcrypt.hashSync(password, 4);
      const user = { id: ++count, email, email_verified: true, name: `Person ${count}`, hash, ...more };
      users.set(email, user);
      return user;
    },
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  });
}

/** What the database knows its askers by; a secret of the connection. */
export const KEY = 'key-of-the-old-database';

/** The options of a connection whose users move here from there. */
export function movingOptions({ url }: LegacyDatabase, scripts: Record<string, string> = {}) {
  return {
    passwordPolicy: 'good',
    enabledDatabaseCustomization: true,
    import_mode: true,
    configuration: { URL: url, KEY },
    customScripts: { login: LOGIN, get_user: GET_USER, ...scripts },
  };
}

const LOGIN = `function login(email, password, callback) {
  const bcrypt = require('bcrypt');
  request.get({
    url: configuration.URL + '/users/' + encodeURIComponent(email),
    headers: { 'x-api-key': configuration.KEY },
    json: true,
  }, function (err, response, user) {
    if (err) return callback(err);
    if (response.statusCode === 404) return callback(new WrongUsernameOrPasswordError(email));
    if (response.statusCode !== 200) return callback(new Error('status ' + response.statusCode + ' for ' + password));
    bcrypt.compare(password, user.hash, function (err, isValid) {
      if (err) return callback(err);
      if (!isValid) return callback(new WrongUsernameOrPasswordError(email, 'wrong'));
      callback(null, {
        user_id: user.id.toString(),
        email: user.email,
        email_verified: user.email_verified,
        name: user.name,
        app_metadata: { plan: 'old' },
      });
    });
  });
}`;

const GET_USER = `async function getByEmail(email, callback) {
  const response = await fetch(configuration.URL + '/users/' + encodeURIComponent(email), {
    headers: { 'x-api-key': configuration.KEY },
  });
  if (response.status === 404) return callback(null);
  if (!response.ok) return callback(new Error('status ' + response.status));
  const user = await response.json();
  callback(null, { user_id: user.id, email: user.email, email_verified: user.email_verified, name: user.name });
}`;
