// A browser application for tests: a page with its own origin and the script of an SDK.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from './browser.ts';
import { startServer, type TestServer } from './server.ts';

interface Application {
  origin: string;
  stop(): void;
}

/** Starts one; it answers every path with the page, except the script's. */
async function startApplication(script: string | Buffer): Promise<Application> {
  const server = http.createServer((request, response) => {
    const isScript = request.url === '/sdk.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? script : '<!doctype html><title>App</title><script src="/sdk.js"></script>');
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  return {
    origin: `http://localhost:${(server.address() as AddressInfo).port}`,
    stop: () => void server.close(),
  };
}

/** Returns the applications of a tenant, with the browser application at an origin. */
export function clientsAt<C extends { client_id: string }>(clients: readonly C[], origin: string): C[] {
  return clients.map((client) =>
    client.client_id === 'spa'
      ? { ...client, callbacks: [`${origin}/callback`], web_origins: [origin] }
      : client,
  );
}

/** The browser build of auth0-js. */
export function auth0Js(): Buffer {
  const manifest = createRequire(import.meta.url).resolve('auth0-js/package.json');
  return readFileSync(join(dirname(manifest), 'dist/auth0.min.js'));
}

interface ApplicationPage {
  server: TestServer;
  origin: string;
  context: BrowserContext;
  /** The application in a new state for each test. */
  page: Page;
}

/**
 * Starts an application and a server for the tests of the suite, with the application open in a browser.
 * @param options.script of the SDK.
 * @param options.tenant returns the tenant for the application's origin.
 * @returns what a test uses, while it runs.
 */
export function openApplication(options: {
  script(): string | Buffer;
  tenant(origin: string): object;
  context?: BrowserContextOptions;
}): () => ApplicationPage {
  let server: TestServer;
  let browser: TestBrowser;
  let application: Application;
  let context: BrowserContext;
  let page: Page;
  before(async () => {
    application = await startApplication(options.script());
    server = await startServer({ tenant: options.tenant(application.origin) });
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    application?.stop();
  });
  beforeEach(async () => {
    context = await browser.newContext(options.context);
    page = await context.newPage();
    await page.goto(application.origin);
  });
  afterEach(() => context.close());
  return () => ({ server, origin: application.origin, context, page });
}
