// The kinds of applications that `gatehouse init` and the development page begin with.
import { angular, vue } from './browser-snippets.ts';
import { device, protectedApi, samlServiceProvider } from './other-snippets.ts';
import type { QuickstartValues, Snippet } from './snippet.ts';
import { auth0React, curl, nextJs, openIdClientMachine, openIdClientPublic, spaJs } from './snippets.ts';
import { express, fastapi, fastify, flask, go, hono, nuxt, spring, svelteKit } from './web-snippets.ts';

/** What the application is to the server: it decides the settings of the tenant file. */
export type Shape = 'spa' | 'regular_web' | 'native' | 'non_interactive' | 'api' | 'device' | 'saml';

export interface Starter {
  /** The argument of `gatehouse init`. */
  name: string;
  /** For the terminal. That of a framework is shown in pages, too: a name, in no language. */
  title: string;
  shape: Shape;
  /** The port of its development server, and the path to which its SDK lets users return. */
  port: number;
  callbackPath: string;
  /** Returns the command that starts it. */
  run(port: number): string;
  /**
   * Returns that command, made to trust a CA. Undefined where only browsers talk to the server.
   * @param file the file of the CA, quoted for a shell.
   */
  trust: ((file: string, command: string) => string) | undefined;
  programs: readonly ((values: QuickstartValues) => Snippet)[];
}

/** Node.js takes further authorities from a file. */
const NODE = (file: string, command: string) => `NODE_EXTRA_CA_CERTS=${file} ${command}`;
const RUN_NODE = { run: () => 'node app.mjs', trust: NODE };
const SPA = { shape: 'spa', callbackPath: '', trust: undefined } as const;
const WEB = { shape: 'regular_web', ...RUN_NODE } as const;
const VITE = { port: 5173, run: (port: number) => `npx vite --port ${port}` } as const;

/** All kinds, in the order in which they are offered. */
export const STARTERS: readonly Starter[] = [
  { name: 'react', title: 'React', ...SPA, ...VITE, programs: [auth0React] },
  { name: 'vue', title: 'Vue', ...SPA, ...VITE, programs: [vue] },
  {
    name: 'angular',
    title: 'Angular',
    ...SPA,
    port: 4200,
    run: (port) => `npx ng serve --port ${port}`,
    programs: [angular],
  },
  { name: 'javascript', title: 'JavaScript', ...SPA, ...VITE, programs: [spaJs] },
  {
    name: 'nextjs',
    title: 'Next.js',
    ...WEB,
    port: 3000,
    callbackPath: '/auth/callback',
    run: (port) => `npx next dev --port ${port}`,
    programs: [nextJs],
  },
  {
    name: 'nuxt',
    title: 'Nuxt',
    ...WEB,
    port: 3000,
    callbackPath: '/auth/callback',
    run: (port) => `npx nuxt dev --port ${port}`,
    programs: [nuxt],
  },
  {
    name: 'sveltekit',
    title: 'SvelteKit',
    ...WEB,
    ...VITE,
    callbackPath: '/auth/callback/gatehouse',
    programs: [svelteKit],
  },
  { name: 'express', title: 'Express', ...WEB, port: 3000, callbackPath: '/callback', programs: [express] },
  { name: 'fastify', title: 'Fastify', ...WEB, port: 3000, callbackPath: '/callback', programs: [fastify] },
  { name: 'hono', title: 'Hono', ...WEB, port: 3000, callbackPath: '/callback', programs: [hono] },
  {
    name: 'python',
    title: 'Python',
    ...WEB,
    port: 8000,
    callbackPath: '/callback',
    run: (port) => `uvicorn app:app --port ${port}`,
    trust: (file, command) => `SSL_CERT_FILE=${file} REQUESTS_CA_BUNDLE=${file} ${command}`,
    programs: [fastapi, flask],
  },
  {
    name: 'go',
    title: 'Go',
    ...WEB,
    port: 8080,
    callbackPath: '/callback',
    run: () => 'go run .',
    trust: (file, command) => `SSL_CERT_FILE=${file} ${command}`,
    programs: [go],
  },
  {
    name: 'spring',
    title: 'Spring Boot',
    ...WEB,
    port: 8080,
    callbackPath: '/login/oauth2/code/gatehouse',
    run: () => 'mvn spring-boot:run',
    trust: (file, command) =>
      `keytool -importcert -noprompt -alias gatehouse -storepass changeit -keystore ca.p12 -file ${file} &&\n   JAVA_TOOL_OPTIONS='-Djavax.net.ssl.trustStore=ca.p12 -Djavax.net.ssl.trustStorePassword=changeit' ${command}`,
    programs: [spring],
  },
  {
    name: 'api',
    title: 'An API that takes access tokens',
    ...RUN_NODE,
    shape: 'api',
    port: 3000,
    callbackPath: '',
    programs: [protectedApi, curl],
  },
  {
    name: 'machine',
    title: 'A machine: a program without users',
    ...RUN_NODE,
    shape: 'non_interactive',
    port: 3000,
    callbackPath: '',
    programs: [openIdClientMachine, curl],
  },
  {
    name: 'native',
    title: 'A desktop or mobile application',
    ...RUN_NODE,
    shape: 'native',
    port: 8400,
    callbackPath: '/callback',
    programs: [openIdClientPublic],
  },
  {
    name: 'device',
    title: 'A device without a keyboard',
    ...RUN_NODE,
    shape: 'device',
    port: 3000,
    callbackPath: '',
    programs: [device],
  },
  {
    name: 'saml',
    title: 'An application with SAML 2.0',
    ...RUN_NODE,
    shape: 'saml',
    port: 3000,
    callbackPath: '/saml/acs',
    programs: [samlServiceProvider],
  },
];

// docs/understand/decisions/operating.md#gatehouse-init-gives-an-application-the-next-port-if-the-server-has-its-own
/**
 * Returns the origin of an application in development: `localhost` at the port of its framework, or at the next one if
 * the server itself has that port.
 */
export function developmentOrigin({ port }: Starter, baseUrl: string): string {
  const { hostname, port: taken } = new URL(baseUrl);
  const isTaken = hostname === 'localhost' && Number(taken) === port;
  return `http://localhost:${isTaken ? port + 1 : port}`;
}

/** Returns the values that an application's programs are filled in with. @param origin its address, without a path. */
export function starterValues(
  { shape, callbackPath }: Starter,
  { origin, clientId, issuer }: { origin: string; clientId: string; issuer: string },
): QuickstartValues {
  return {
    domain: new URL(issuer).host,
    issuer,
    clientId,
    callback: `${origin}${callbackPath}`,
    afterLogout: origin,
    audience: shape === 'saml' ? undefined : STARTER_API,
  };
}

/** The identifier of the API in the tenant files that are written. It is a name; nothing has to be there. */
export const STARTER_API = 'https://api.example.test/';
