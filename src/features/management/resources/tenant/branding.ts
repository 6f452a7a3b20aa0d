// Appearance: `/branding/themes` and `/branding/templates/universal-login`.
import { z } from 'zod';
import { templateFault } from '../../../../capabilities/pages/page-template.ts';
import type { DocumentRecord } from '../../../../records/tenant/documents.ts';
import { UniqueKeyError } from '../../../../store/contract.ts';
import { withJsonLength } from '../../body-size.ts';
import { bodyText, type Call, callsWith, created, noContent, ok } from '../../call.ts';
import { type DocumentDependencies, documentOf, documentsOf } from '../../document-resource.ts';
import { apiError } from '../../management-errors.ts';
import { conflict, merged, notFound } from '../../resource.ts';

const color = z.string().regex(/^(#([0-9a-f]{3}|[0-9a-f]{4}|[0-9a-f]{6}|[0-9a-f]{8}))?$/i);
/** A URL, or an empty string for none. */
const address = z.union([z.literal(''), z.url({ protocol: /^https$/ })]);
const size = z.number().min(0).max(200);
const style = z.enum(['pill', 'rounded', 'sharp']).optional();
const font = z.looseObject({ bold: z.boolean().optional(), size: size.optional() }).optional();
const side = z.enum(['center', 'left', 'right']).optional();

// Members that the pages do not use are accepted and stored.
const theme = z.strictObject({
  displayName: z.string().max(2048).optional(),
  borders: z.looseObject({
    button_border_radius: size.optional(),
    button_border_weight: size.optional(),
    buttons_style: style,
    input_border_radius: size.optional(),
    input_border_weight: size.optional(),
    inputs_style: style,
    show_widget_shadow: z.boolean().optional(),
    widget_border_weight: size.optional(),
    widget_corner_radius: size.optional(),
  }),
  identifiers: z.record(z.string(), z.unknown()).optional(),
  colors: z.record(z.string(), z.union([color, z.enum(['auto', 'light', 'dark'])])),
  fonts: z.looseObject({
    ...{ body_text: font, buttons_text: font, input_labels: font, links: font, subtitle: font, title: font },
    font_url: address.optional(),
    reference_text_size: size.optional(),
  }),
  page_background: z.looseObject({
    background_color: color.optional(),
    background_image_url: address.optional(),
    page_layout: side,
  }),
  widget: z.looseObject({
    header_text_alignment: side,
    logo_height: size.optional(),
    logo_position: z.enum(['center', 'left', 'right', 'none']).optional(),
    logo_url: address.optional(),
  }),
});

const noTheme = notFound(
  'There was an error retrieving branding settings: invalid theme ID',
  'theme_not_found',
);
const THEMES = { kind: 'theme', missing: noTheme };
const view = ({ id, body }: { id: string; body: object }) => ({ themeId: id, ...body });

const call = callsWith<DocumentDependencies>();

const themeCalls: Call<DocumentDependencies>[] = [
  call({
    method: 'POST',
    path: '/branding/themes',
    scopes: ['update:branding'],
    summary: 'Create the theme',
    body: theme,
    handle: async (deps, { body }) => {
      const record: DocumentRecord = {
        id: deps.random(12).toString('hex'),
        kind: 'theme',
        name: 'default',
        body,
        created_at: deps.now(),
        updated_at: deps.now(),
      };
      await deps.store
        .collection('documents')
        .insert(record)
        .catch((thrown: unknown) => {
          throw thrown instanceof UniqueKeyError
            ? conflict('There is a theme already.', 'theme_conflict')()
            : thrown;
        });
      return ok(view(record), { after: body });
    },
  }),
  call({
    method: 'GET',
    path: '/branding/themes/default',
    scopes: ['read:branding'],
    summary: 'Get the theme',
    handle: async (deps) => {
      const [found] = await documentsOf(deps.store, 'theme');
      if (found === undefined) throw noTheme();
      return ok(view(found));
    },
  }),
  call({
    method: 'GET',
    path: '/branding/themes/:id',
    scopes: ['read:branding'],
    summary: 'Get a theme',
    handle: async (deps, { params }) => ok(view(await documentOf(deps.store, THEMES, params.id))),
  }),
  call({
    method: 'PATCH',
    path: '/branding/themes/:id',
    scopes: ['update:branding'],
    summary: 'Update the theme',
    body: theme.partial(),
    handle: async (deps, { params, body }) => {
      const before = await documentOf(deps.store, THEMES, params.id);
      const after = await deps.store.collection('documents').update(before.id, (current) => ({
        ...current,
        body: merged(current.body, body),
        updated_at: deps.now(),
      }));
      if (after === undefined) throw noTheme();
      return ok(view(after), { before: before.body, after: after.body });
    },
  }),
  call({
    method: 'DELETE',
    path: '/branding/themes/:id',
    scopes: ['delete:branding'],
    summary: 'Delete the theme',
    handle: async (deps, { params }) => {
      const before = await documentOf(deps.store, THEMES, params.id);
      await deps.store.collection('documents').delete(before.id);
      return noContent({ before: before.body });
    },
  }),
];

const TEMPLATE = 'universal-login';
const MAX_TEMPLATE_BYTES = 102_400;

const path = '/branding/templates/universal-login';

const templateCalls: Call<DocumentDependencies>[] = [
  call({
    method: 'GET',
    path,
    scopes: ['read:branding'],
    summary: 'Get the page template',
    handle: async (deps) => {
      const found = await deps.store.collection('documents').get(TEMPLATE);
      if (found === undefined)
        throw apiError(404, 'Template does not exist.', 'inexistent_templates_universal_login');
      return ok(found.body);
    },
  }),
  call({
    method: 'PUT',
    path,
    scopes: ['update:branding'],
    summary: 'Set the page template',
    textTypes: ['text/html'],
    // The template as HTML, or as a member of an object.
    body: withJsonLength(
      z.union([bodyText, z.strictObject({ template: z.string() }).transform(({ template }) => template)]),
      MAX_TEMPLATE_BYTES,
    ),
    handle: async (deps, { body: template }) => {
      const isTooLong = Buffer.byteLength(template) > MAX_TEMPLATE_BYTES;
      const fault = isTooLong
        ? `The template has at most ${MAX_TEMPLATE_BYTES} bytes.`
        : await templateFault(deps.liquid, template);
      if (fault !== undefined) throw apiError(400, fault, 'invalid_template');
      const before = await deps.store.collection('documents').get(TEMPLATE);
      await deps.store.collection('documents').put({
        id: TEMPLATE,
        kind: TEMPLATE,
        body: { body: template },
        created_at: before?.created_at ?? deps.now(),
        updated_at: deps.now(),
      });
      const log = { before: before?.body, after: { body: template } };
      return before === undefined ? { ...created({}), ...log } : noContent(log);
    },
  }),
  call({
    method: 'DELETE',
    path,
    scopes: ['delete:branding'],
    summary: 'Delete the page template',
    handle: async (deps) => {
      const before = (await deps.store.collection('documents').take(TEMPLATE))?.body;
      return noContent({ before });
    },
  }),
];

export const brandingCalls: Call<DocumentDependencies>[] = [...themeCalls, ...templateCalls];
