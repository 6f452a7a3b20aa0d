// A real Chromium for tests, from npm alone: @sparticuz/chromium's binary, driven by playwright-core.
import { execFile } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core';
import { PATIENCE } from './wait-until.ts';

/** Quiet, and no network of its own: whatever reaches out must be what the test does. */
const SWITCHES = [
  // Root, as in CI containers, has no sandbox.
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-domain-reliability',
  '--disable-sync',
  '--disable-quic',
  '--no-first-run',
  '--no-pings',
  '--font-render-hinting=none',
  // Pages live for seconds here: what compiles their scripts once more, to run faster, takes more time than it saves.
  '--js-flags=--no-turbofan --no-maglev',
  // Names but those of the machine itself do not resolve.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1]',
];

/** What a test has of the browser: contexts, which share nothing with those of others. */
export interface TestBrowser {
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>;
  /** Closes the contexts that were opened here. */
  close(): Promise<void>;
}

/**
 * It draws no frame that it is not told to, and none tells it. Styles and layout are worked out when a script asks for them, as
 * ever; drawing a page takes as much of a processor as all else. Browsers of macOS cannot do it.
 */
const UNDRAWN = process.platform === 'darwin' ? [] : ['--enable-begin-frame-control'];

/** The browsers of this process, by their switches. */
const browsers = new Map<string, Promise<Browser>>();

/**
 * A browser, started once per process and certificate; it ends with the process, or by {@link closeBrowsers}. On
 * systems other than Linux, CHROMIUM_PATH names the browser to use.
 * @param ca a certificate (PEM) to trust wherever it is in a chain, of the test server's CA say: by its
 *   public key, so that all others are checked as ever.
 * @param draws whether pages are drawn: for pages that are only asked for styles and layout they need not be. Where they are
 *   not, nothing can be clicked: that waits for a frame.
 */
export async function launchBrowser(ca?: string, { draws = true } = {}): Promise<TestBrowser> {
  const switches = [
    ...SWITCHES,
    ...(draws ? [] : UNDRAWN),
    ...(ca === undefined ? [] : [`--ignore-certificate-errors-spki-list=${publicKeyHash(ca)}`]),
  ];
  const key = switches.join(' ');
  const starting = browsers.get(key) ?? launch(switches);
  browsers.set(key, starting);
  const browser = await starting;
  const contexts: BrowserContext[] = [];
  return {
    newContext: async (options) => {
      const context = await browser.newContext(options);
      context.setDefaultTimeout(PATIENCE);
      contexts.push(context);
      return context;
    },
    close: async () => {
      await Promise.all(contexts.splice(0).map((context) => context.close()));
    },
  };
}

async function launch(args: string[]): Promise<Browser> {
  const { executablePath, env } = await installation();
  return chromium.launch({ executablePath, env: { ...process.env, ...env }, args });
}

/** Ends the browsers of this process. */
export async function closeBrowsers(): Promise<void> {
  const started = [...browsers.values()];
  browsers.clear();
  for (const browser of started) await (await browser).close();
}

/** SHA-256 of a certificate's public key (SPKI, DER), base64: how Chromium's switch names it. */
function publicKeyHash(pem: string): string {
  const spki = new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('base64');
}

/** The package's own configuration looks for the font in places of its own. */
const FONTS_FILE = 'gatehouse-fonts.conf';

function fontsConfiguration(home: string): string {
  const directory = (name: string) => join(home, 'fonts', name);
  return `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${directory('fonts')}</dir><cachedir>${directory('cache')}</cachedir></fontconfig>`;
}

interface Installation {
  executablePath: string;
  env: Record<string, string>;
}

async function installation(): Promise<Installation> {
  const { CHROMIUM_PATH } = process.env;
  if (CHROMIUM_PATH !== undefined) return { executablePath: CHROMIUM_PATH, env: {} };
  const home = await unpacked();
  const executablePath = join(home, 'chromium');
  const env: Record<string, string> = {};
  // A bare machine has no fonts; the package brings one.
  if (!existsSync('/etc/fonts/fonts.conf')) env.FONTCONFIG_FILE = join(home, 'fonts', FONTS_FILE);
  // Nor NSS and the like. Those of the system go first: they fit its C library.
  if (await lacksLibraries(executablePath)) {
    const libraries = [process.env.LD_LIBRARY_PATH, join(home, 'al2023', 'lib')];
    env.LD_LIBRARY_PATH = libraries.filter(Boolean).join(':');
  }
  return { executablePath, env };
}

/**
 * The directory of this version's unpacked binary, made once a machine and user. Two test runs may start
 * at the same time: each unpacks for itself, and the first to finish is kept.
 */
async function unpacked(): Promise<string> {
  const entry = fileURLToPath(import.meta.resolve('@sparticuz/chromium'));
  const packageDir = dirname(dirname(entry));
  const { version } = createRequire(import.meta.url)(join(packageDir, 'package.json')) as { version: string };
  const home = join(tmpdir(), `gatehouse-chromium-${version}-${process.getuid?.() ?? 0}`);
  if (existsSync(home)) return home;
  const staging = await mkdtemp(`${home}-`);
  await unpackInto(staging, join(packageDir, 'bin'));
  await writeFile(join(staging, 'fonts', FONTS_FILE), fontsConfiguration(home));
  try {
    await rename(staging, home);
  } catch (thrown) {
    await rm(staging, { recursive: true });
    if (!existsSync(home)) throw thrown;
  }
  return home;
}

/** The package unpacks into the system's temporary directory; for this once, that is ours. */
async function unpackInto(directory: string, bin: string): Promise<void> {
  const { default: binary, inflate } = await import('@sparticuz/chromium');
  const before = process.env.TMPDIR;
  process.env.TMPDIR = directory;
  try {
    await Promise.all([binary.executablePath(bin), inflate(join(bin, 'al2023.tar.br'))]);
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}

async function lacksLibraries(executable: string): Promise<boolean> {
  const { stdout } = await promisify(execFile)('ldd', [executable]);
  return stdout.includes('not found');
}
