// The routes of branding.
import type { RouteDeclarations } from '../../../http/routes.ts';
import { withLongTexts } from '../forms.ts';
import { consoleForm, consolePage } from '../page.ts';
import { removeTheme, saveLook, showDraft, showLook, showPreview } from './look-page.ts';
import { previewEntered, previewMessage, showMessage, showMessages, submitMessage } from './message-pages.ts';
import { type BrandingDependencies, PATH, SECTION } from './shared.ts';
import { saveTemplate, showTemplate } from './template-page.ts';
import { saveTexts, showPrompts, showTexts } from './text-pages.ts';

type D = BrandingDependencies;

const page = (scopes: readonly string[], handle: Parameters<typeof consolePage<D>>[2]) =>
  consolePage<D>(SECTION, { scopes }, handle);
const form = (
  scopes: readonly string[],
  handle: Parameters<typeof consoleForm<D>>[2],
  { isDangerous = false } = {},
) => withLongTexts(consoleForm<D>(SECTION, { scopes, isDangerous }, handle));

const LOOK = ['read:branding'];
const CHANGE = ['update:branding'];

// The scopes for messages depend on whether they belong to a connection, so the handlers check them.
export const brandingRoutes: RouteDeclarations<D> = {
  [`GET ${PATH}` as const]: page(LOOK, showLook),
  [`POST ${PATH}` as const]: form(CHANGE, saveLook),
  [`GET ${PATH}/preview` as const]: page(LOOK, showPreview),
  [`POST ${PATH}/preview` as const]: form(LOOK, showDraft),
  [`POST ${PATH}/theme/delete` as const]: form(['delete:branding'], removeTheme),
  [`GET ${PATH}/template` as const]: page(LOOK, showTemplate),
  // Dangerous: a template may contain scripts, which run where users type their passwords.
  [`POST ${PATH}/template` as const]: form(CHANGE, saveTemplate, { isDangerous: true }),
  [`GET ${PATH}/messages` as const]: page(LOOK, showMessages),
  [`GET ${PATH}/messages/:message` as const]: page([], showMessage),
  // Dangerous: a template receives the link or code of every recipient, and an SMS can be sent to any number.
  [`POST ${PATH}/messages/:message` as const]: form([], submitMessage, { isDangerous: true }),
  [`GET ${PATH}/messages/:message/preview` as const]: page([], previewMessage),
  [`POST ${PATH}/messages/:message/preview` as const]: form([], previewEntered),
  [`GET ${PATH}/texts` as const]: page(['read:prompts'], showPrompts),
  [`GET ${PATH}/texts/:prompt/:language` as const]: page(['read:prompts'], showTexts),
  [`POST ${PATH}/texts/:prompt/:language` as const]: form(['update:prompts'], saveTexts),
};

/** The templates of these pages, below views/pages. */
export const BRANDING_PAGES: readonly string[] = [
  'look',
  'template',
  'messages',
  'message',
  'prompts',
  'texts',
].map((name) => `console/branding-${name}`);
