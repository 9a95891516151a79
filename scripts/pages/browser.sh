# Looks at pages in a headless Chromium: how wide they are on screens of a width, and a picture of one. The window cannot be
# narrower than 500 pixels, so a page is opened in a frame. Sourced.

profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT

browser() {
  timeout 120 chromium --headless --no-sandbox --disable-gpu --allow-file-access-from-files --user-data-dir="$profile" \
    --hide-scrollbars --virtual-time-budget=20000 "$@" 2> /dev/null
}

# frame WIDTH HEIGHT PAGE: a page that shows another one as a screen of that width does.
frame() {
  local frame
  frame=$(mktemp "$profile/frame-XXXXXX.html")
  cat > "$frame" <<HTML
<!DOCTYPE html><meta charset="utf-8"><style>body { margin: 0 } iframe { border: 0; width: $1px; height: $2px }</style>
<iframe src="file://$(realpath "$3")"></iframe>
<script>onload = () => {
  const inside = document.querySelector("iframe"), page = inside.contentDocument, width = inside.contentWindow.innerWidth;
  const scrolls = [...page.querySelectorAll(".scroll")].map(one => one.scrollWidth > one.clientWidth);
  const title = page.querySelector("h1"), next = title.nextElementSibling, first = next.matches(".headline") ? next : title;
  document.title = JSON.stringify({ width, page: page.scrollingElement.scrollWidth, scrolling: scrolls.filter(x => x).length,
    headline: first.getBoundingClientRect().bottom });
}</script>
HTML
  echo "$frame"
}

# measured WIDTH PAGE: a line of JSON with what the page takes.
measured() {
  browser --window-size=1400,1000 --dump-dom "file://$(frame "$1" 900 "$2")" | sed -n 's|.*<title>\(.*\)</title>.*|\1|p'
}

# picture WIDTH HEIGHT PAGE FILE
picture() {
  browser --window-size="$(($1 < 500 ? 500 : $1)),$2" --screenshot="$4" "file://$(frame "$1" "$2" "$3")" > /dev/null
}
