// Scripts of custom databases in the style of published templates for MongoDB, MySQL, PostgreSQL and ASP.NET membership, with
// drivers from the operator's folder of packages.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { tenant as base, payload } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { REALM, realmLogin } from './support.ts';

const PASSWORD = 'the-old-password';
const EMAIL = 'ada@example.test';
const ROW = { id: 7, nickname: 'ada', email: EMAIL, password: bcrypt.hashSync(PASSWORD, 4) };

/** Fake drivers that answer from one row, with the interfaces of the real ones. */
const DRIVERS: Readonly<Record<string, string>> = {
  mongodb: `const row = { ...${JSON.stringify(ROW)}, _id: { toString: () => '7' } };
    exports.MongoClient = class {
      constructor(uri) { this.uri = uri; }
      connect(done) { setTimeout(() => done(this.uri === 'db://old' ? null : new Error('no such host')), 1); }
      db() { return { collection: () => ({ findOne: ({ email }, done) => done(null, email === row.email ? row : null) }) }; }
      close() {}
    };`,
  mysql: `const row = ${JSON.stringify(ROW)};
    exports.createConnection = ({ host }) => ({
      connect() {},
      query: (sql, [email], done) => setTimeout(() => done(host === 'db://old' ? null : new Error('no such host'), email === row.email ? [row] : []), 1),
    });`,
  pg: `const row = ${JSON.stringify(ROW)};
    exports.postgres = (uri, done) => done(uri === 'db://old' ? null : new Error('no such host'), {
      query: (sql, [email], answer) => setTimeout(() => answer(null, { rows: email === row.email ? [row] : [] }), 1),
    }, () => {});`,
  tedious: `const { EventEmitter } = require('./events');
    const row = ${JSON.stringify(ROW)};
    exports.TYPES = { VarChar: 'VarChar' };
    exports.Request = class {
      constructor(sql, done) { Object.assign(this, { sql, done, given: {} }); }
      addParameter(name, type, value) { this.given[name] = value; }
      on(event, handle) { this[event] = handle; }
    };
    exports.Connection = class extends EventEmitter {
      constructor({ server }) { super(); setTimeout(() => this.emit('connect', server === 'db://old' ? undefined : new Error('no such host')), 1); }
      execSql(request) {
        const rows = request.given.Email === row.email ? [Object.fromEntries(Object.entries(row).map(([key, value]) => [key, { value }]))] : [];
        for (const one of rows) request.row?.(one);
        request.done(null, rows.length, rows);
      }
      close() {}
    };`,
};

const EVENTS = `exports.EventEmitter = class {
  handlers = {};
  on(event, handle) { (this.handlers[event] ??= []).push(handle); return this; }
  emit(event, ...args) { for (const handle of this.handlers[event] ?? []) handle.apply(this, args); }
};`;

const profile = (id: string) => `{ user_id: ${id}, nickname: user.nickname, email: user.email }`;
const checked = (id: string) => `bcrypt.compare(password, user.password, function (err, isValid) {
  if (err || !isValid) return callback(err || new WrongUsernameOrPasswordError(email));
  return callback(null, ${profile(id)});
});`;

/** The bodies of `login` and `get_user`; each handles the `user` that it found, or undefined. */
const SHAPES: Readonly<Record<string, { id: string; body(found: string, absent: string): string }>> = {
  mongodb: {
    id: "'mongodb|' + user._id.toString()",
    body: (found, absent) => `const MongoClient = require('mongodb@4.1.0').MongoClient;
      const client = new MongoClient(configuration.STORE);
      client.connect(function (err) {
        if (err) return callback(err);
        const users = client.db('db-name').collection('users');
        users.findOne({ email: email }, function (err, user) {
          client.close();
          if (err) return callback(err);
          if (!user) return ${absent};
          ${found}
        });
      });`,
  },
  mysql: {
    id: "'mysql|' + user.id.toString()",
    body: (found, absent) => `const mysql = require('mysql');
      const connection = mysql.createConnection({ host: configuration.STORE, user: 'me', password: 'secret', database: 'mydb' });
      connection.connect();
      connection.query('SELECT id, nickname, email, password FROM users WHERE email = ?', [email], function (err, results) {
        if (err) return callback(err);
        if (results.length === 0) return ${absent};
        const user = results[0];
        ${found}
      });`,
  },
  pg: {
    id: "'pg|' + user.id",
    body: (found, absent) => `const postgres = require('pg').postgres;
      postgres(configuration.STORE, function (err, client, done) {
        if (err) return callback(err);
        client.query('SELECT id, nickname, email, password FROM users WHERE email = $1', [email], function (err, result) {
          done();
          if (err) return callback(err);
          if (result.rows.length === 0) return ${absent};
          const user = result.rows[0];
          ${found}
        });
      });`,
  },
  tedious: {
    id: "'tedious|' + String(user.id)",
    body: (found, absent) => `const sqlserver = require('tedious@11.0.3');
      const connection = new sqlserver.Connection({ server: configuration.STORE, options: { encrypt: true } });
      connection.on('connect', function (err) {
        if (err) return callback(err);
        const request = new sqlserver.Request('SELECT * FROM Memberships WHERE Email = @Email', function (err, rowCount, rows) {
          if (err) return callback(err);
          if (rowCount < 1) return ${absent};
          const user = Object.fromEntries(Object.entries(rows[0]).map(([key, column]) => [key, column.value]));
          ${found}
        });
        request.addParameter('Email', sqlserver.TYPES.VarChar, email);
        connection.execSql(request);
      });`,
  },
};

const scriptsOf = (name: string) => {
  const { id, body } = SHAPES[name] as (typeof SHAPES)[string];
  const wrong = 'callback(new WrongUsernameOrPasswordError(email))';
  return {
    login: `function login(email, password, callback) { const bcrypt = require('bcrypt'); ${body(checked(id), wrong)} }`,
    get_user: `function getByEmail(email, callback) { ${body(`callback(null, ${profile(id)});`, 'callback(null)')} }`,
  };
};

describe('custom database scripts with drivers of the operator', () => {
  let dataDir: string;
  let server: TestServer;
  const put = async (name: string, files: Record<string, string>) => {
    const folder = join(dataDir, 'modules', 'node_modules', name);
    await mkdir(folder, { recursive: true });
    for (const [file, text] of Object.entries({ 'package.json': '{}', ...files }))
      await writeFile(join(folder, file), text);
  };
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-drivers-'));
    for (const [name, text] of Object.entries(DRIVERS))
      await put(name, { 'index.js': text, 'events.js': EVENTS });
    await put('broken', { 'index.js': 'function (' });
    const database = (name: string, customScripts: object, store = 'db://old') => ({
      name,
      enabled_clients: ['web'],
      options: {
        enabledDatabaseCustomization: true,
        import_mode: true,
        configuration: { STORE: store },
        customScripts,
      },
    });
    const missing = `function login(email, password, callback) { require('mssql'); callback(null); }`;
    server = await startServer({
      dataDir,
      tenant: {
        ...base,
        users: [],
        clients: base.clients.map((one) =>
          one.client_id === 'web' ? { ...one, grant_types: [...one.grant_types, REALM] } : one,
        ),
        databases: [
          ...base.databases,
          ...Object.keys(SHAPES).map((name) => database(name, scriptsOf(name))),
          database('away', scriptsOf('mysql'), 'db://gone'),
          database('missing', { ...scriptsOf('pg'), login: missing }),
          database('unfit', { ...scriptsOf('pg'), login: missing.replace('mssql', 'broken') }),
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const logIn = (realm: string, username = EMAIL, password = PASSWORD) =>
    realmLogin(server, { username, password, realm });

  const signUp = (connection: string, email: string) =>
    createAgent(server).request('/dbconnections/signup', {
      json: { client_id: 'web', connection, email, password: 'Another-1-password!' },
    });
  const failures = async (connection: string) => {
    const { records } = await server.store.collection('logs').list({ limit: 500 });
    const failed = records.filter((one) => one.connection === connection && one.type === 'f');
    return failed.map(({ description }) => description).join();
  };

  it('find users and log them in', async () => {
    for (const name of Object.keys(SHAPES)) {
      expect((await signUp(name, EMAIL)).status, `${name}: an address of there`).to.equal(400);
      expect((await signUp(name, `new-${name}@example.test`)).status, `${name}: a new one`).to.equal(200);
      expect((await logIn(name, EMAIL, 'wrong')).status, `${name}: a wrong password`).to.equal(403);
      expect((await logIn(name, 'nobody@example.test')).status, `${name}: nobody`).to.equal(403);
      const answer = await logIn(name);
      expect(answer.status, `${name}: ${await failures(name)}`).to.equal(200);
      expect(payload(answer.json().id_token), name).to.include({
        sub: `auth0|${name}|7`,
        email: EMAIL,
        nickname: 'ada',
      });
      expect(await failures(name), name).to.equal('');
    }
  });

  it('report why they failed in the log only', async () => {
    const messages = { away: 'no such host', missing: 'mssql', unfit: 'broken' };
    for (const [name, why] of Object.entries(messages)) {
      const answer = await logIn(name);
      expect(answer.status, name).to.equal(403);
      expect(answer.text, name).to.not.contain(why);
      expect(await failures(name), name).to.contain(why);
    }
  });
});
