import react from '@vitejs/plugin-react';
import { defineConfig, loadEnv } from 'vite';

export default defineConfig(({ mode }) => {
  const { PORT, API_PORT } = loadEnv(mode, process.cwd(), '');
  return {
    plugins: [react()],
    // The API has the same origin as the application, as behind a proxy in production.
    server: {
      port: Number(PORT),
      strictPort: true,
      proxy: { '/api': `http://localhost:${API_PORT}` },
      // Vite serves the files of this folder, and Gatehouse keeps its own here. The rest is Vite's own list.
      fs: {
        deny: [
          '**/config/tenant.yaml',
          '**/data/{keys,store}/**',
          '.env',
          '.env.*',
          '*.{crt,pem}',
          '**/.git/**',
        ],
      },
    },
  };
});
