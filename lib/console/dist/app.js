import{X as m,b as o,fb as p,ha as i,y as r}from"./shell.js";var t=document.getElementById("app");t&&i().finally(()=>{r(),o(m(p,{}),t)});
