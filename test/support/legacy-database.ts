// An external user database with an HTTP API, and the scripts of a connection that access it.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import bcrypt from 'bcryptjs';

interface LegacyUser {
  id: number | string;
  email: string;
  username?: string;
  email_verified: boolean;
  name: string;
  hash: string;
  metadata?: Record<string, unknown>;
}

export interface LegacyDatabase {
  url: string;
  users: Map<string, LegacyUser>;
  /** The paths that were requested so far. */
  seen: string[];
  /** The writes so far: method and path, and the body. */
  writes: [string, Record<string, unknown>][];
  /** Answers instead of the database until it is set to undefined. */
  misbehave: ((response: http.ServerResponse) => void) | undefined;
  /** Creates a user in it. */
  add(email: string, password: string, more?: Partial<LegacyUser>): LegacyUser;
  stop(): Promise<unknown>;
}

/** Starts one on a port that the system chooses. It refuses requests without its API key. */
export async function startLegacyDatabase(): Promise<LegacyDatabase> {
  const users = new Map<string, LegacyUser>();
  const seen: string[] = [];
  const writes: LegacyDatabase['writes'] = [];
  const state = { misbehave: undefined as LegacyDatabase['misbehave'] };
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request
      .on('data', (chunk) => chunks.push(chunk))
      .on('end', () => {
        const path = request.url ?? '';
        seen.push(path);
        const json = (status: number, value: unknown) =>
          response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
        if (state.misbehave !== undefined) return state.misbehave(response);
        if (request.headers['x-api-key'] !== KEY) return json(401, {});
        const name = decodeURIComponent(path.split('/')[2] ?? '');
        const user = [...users.values()].find((one) => [one.email, one.username].includes(name));
        if (request.method === 'GET') return user === undefined ? json(404, {}) : json(200, user);
        const body = JSON.parse(Buffer.concat(chunks).toString() || '{}');
        writes.push([`${request.method} ${path}`, body]);
        return json(...write(`${request.method} ${path.split('/')[3] ?? ''}`, { name, user, body }));
      });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  let count = 0;
  /** Makes a write. @returns the status and body of the answer. */
  const write = (
    what: string,
    { name, user, body }: { name: string; user: LegacyUser | undefined; body: Record<string, any> },
  ): [number, object] => {
    if (what === 'POST ') {
      if (users.has(body.email)) return [409, {}];
      const made = { id: ++count, email_verified: false, name: body.name ?? `Person ${count}`, ...body };
      users.set(body.email, made as unknown as LegacyUser);
      return [201, { id: made.id }];
    }
    if (what === 'DELETE ') {
      const one = [...users.values()].find(({ id }) => String(id) === name);
      return one !== undefined && users.delete(one.email) ? [200, {}] : [404, {}];
    }
    if (user === undefined || what !== 'PATCH ') return [404, {}];
    users.delete(user.email);
    users.set(body.email ?? user.email, { ...user, ...body });
    return [200, {}];
  };
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    users,
    seen,
    writes,
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

/** The API key of the database; a secret in the connection's configuration. */
export const KEY = 'key-of-the-old-database';

/** Returns the options of a connection whose users move here from the database. */
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

/** Returns the options of a connection whose users stay in the database. */
export function elsewhereOptions({ url }: LegacyDatabase, scripts: Record<string, string | null> = {}) {
  return {
    passwordPolicy: 'good',
    enabledDatabaseCustomization: true,
    import_mode: false,
    configuration: { URL: url, KEY },
    customScripts: { ...SCRIPTS, ...scripts },
  };
}

const SCRIPTS: Record<string, string> = {
  login: LOGIN.replace("app_metadata: { plan: 'old' }", 'username: user.username, ...user.metadata'),
  get_user: GET_USER.replace('name: user.name', 'name: user.name, username: user.username'),
  create: `function create(user, callback) {
    const bcrypt = require('bcrypt');
    bcrypt.hash(user.password, 4, function (err, hash) {
      if (err) return callback(err);
      const { password, ...said } = user;
      request.post({
        url: configuration.URL + '/users',
        headers: { 'x-api-key': configuration.KEY },
        json: { ...said, hash },
      }, function (err, response, body) {
        if (err) return callback(err);
        if (response.statusCode === 409) return callback(new ValidationError('user_exists', 'There is one'));
        if (response.statusCode !== 201) return callback(new Error('status ' + response.statusCode + ' for ' + password));
        callback(null);
      });
    });
  }`,
  verify: `async function verify(email, callback) {
    const axios = require('axios@0.22.0');
    try {
      await axios.patch(configuration.URL + '/users/' + encodeURIComponent(email), { email_verified: true },
        { headers: { 'x-api-key': configuration.KEY } });
      return callback(null, true);
    } catch (e) {
      return callback(new Error(e.message));
    }
  }`,
  change_password: `function changePassword(email, newPassword, callback) {
    const hash = require('bcrypt').hashSync(newPassword, 4);
    request({
      method: 'PATCH',
      url: configuration.URL + '/users/' + encodeURIComponent(email),
      headers: { 'x-api-key': configuration.KEY },
      json: { hash },
    }, function (err, response) {
      if (err) return callback(err);
      if (response.statusCode === 404) return callback(null, false);
      if (response.statusCode !== 200) return callback(new Error('status ' + response.statusCode + ' for ' + newPassword));
      callback(null, true);
    });
  }`,
  change_email: `async function changeEmail(email, newEmail, verified, callback) {
    const response = await fetch(configuration.URL + '/users/' + encodeURIComponent(email), {
      method: 'PATCH',
      headers: { 'x-api-key': configuration.KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ email: newEmail, email_verified: verified }),
    });
    if (response.status === 404) return callback(null, false);
    if (!response.ok) return callback(new Error('status ' + response.status));
    return callback(null, true);
  }`,
  change_username: `async function changeUsername(username, newUsername, callback) {
    const response = await fetch(configuration.URL + '/users/' + encodeURIComponent(username), {
      method: 'PATCH',
      headers: { 'x-api-key': configuration.KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ username: newUsername }),
    });
    return callback(null, response.ok);
  }`,
  delete: `function remove(id, callback) {
    request.delete({
      url: configuration.URL + '/users/' + encodeURIComponent(id),
      headers: { 'x-api-key': configuration.KEY },
    }, function (err, response) {
      if (err) return callback(err);
      if (response.statusCode !== 200) return callback(new Error('status ' + response.statusCode));
      callback(null);
    });
  }`,
};
